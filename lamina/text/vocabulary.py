"""Know the common words of English, and those of them that mean the same."""

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

from lamina.text.english import CALENDAR_WORDS, FUNCTION_WORDS, NUMBER_WORDS, SENTENCE_STARTERS

# A line's words may replace each other in a statement: of one meaning, tense and person aside from "he likes".
_SYNONYMS = """
like likes love loves enjoy enjoys adore adores
liked loved enjoyed adored
hate hates detest detests
hated detested
buy buys purchase purchases
bought purchased
begin begins start starts
began started
end ends finish finishes
ended finished
choose chooses select selects
chose selected
fix fixes repair repairs
fixed repaired
use uses utilize utilizes utilise utilises take takes
used utilized utilised
help helps assist assists
helped assisted
get gets obtain obtains
got obtained gotten
need needs require requires
needed required
deploy deployment
deploys deployments
quick fast rapid
quickly rapidly
big large
bigger larger
biggest largest
small little
hard difficult
easy simple
glad happy
smart clever intelligent
ill sick
rich wealthy
afraid scared
whole entire
favorite favourite
color colour
colors colours
flavor flavour
center centre
organize organise
organized organised
organization organisation
traveling travelling
program programme
gray grey
license licence
judgment judgement
behavior behaviour
neighbor neighbour
labor labour
theater theatre
analyze analyse
recognize recognise
realize realise
film movie
films movies
photo photograph picture pic
photos photographs pictures pics
phone telephone
phones telephones
cellphone mobile
car automobile
cars automobiles
bike bicycle
bikes bicycles
kid child
kids children
mother mom mum
father dad
grandmother grandma
grandfather grandpa
doctor physician
doctors physicians
error mistake
errors mistakes
salary wage
company firm
companies firms
method technique
shop store
shops stores
apartment flat
apartments flats
holiday vacation
holidays vacations
fridge refrigerator
television tv
email e-mail mail
info information
computer pc
computers pcs
ad advert advertisement
ads adverts advertisements
exam examination
exams examinations
math maths mathematics
lab laboratory
america usa
uk britain
okay ok
relation relationship
difference different differs differ
relations relationships
site website
sites websites
teen teenager
teens teenagers
learned learnt
virus viruses
maybe perhaps
till until
toward towards
nobody no-one
everybody everyone
somebody someone
anybody anyone
""".strip().splitlines()


_MEANINGS = {word: line.split()[0] for line in _SYNONYMS for word in line.split()}
# An ending, and what the base has in its place.
_INFLECTIONS = (
    *(("ies", "y"), ("ied", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ed", ""), ("ed", "e"), ("ing", "")),
    *(("ing", "e"), ("ly", ""), ("er", ""), ("er", "e"), ("ers", ""), ("ers", "e"), ("iness", "y"), ("ness", "")),
    *(("est", ""), ("est", "e")),
)
_LEAST_BASE = 3
_ALWAYS_KNOWN = FUNCTION_WORDS | SENTENCE_STARTERS | CALENDAR_WORDS | NUMBER_WORDS.keys() | _MEANINGS.keys()


def meaning_of(word: str) -> str:
    """Return the word that stands for all words of one meaning."""
    return _MEANINGS.get(word, word)


@lru_cache(maxsize=16_384)
def is_english_word(word: str) -> bool:
    """Tell whether a word in small letters is a common English one; an uncommon word, a typing error or a key is none.

    Source:
        SCOWL, sizes 10 to 35: 40 000 words, which are kept as 17 000 base forms.
    """
    known = _base_forms()
    return word in _ALWAYS_KNOWN or word in known or any(base in known for base in _bases(word))


def _bases(word: str) -> Iterator[str]:
    for ending, replaced in _INFLECTIONS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_BASE:
            base = word.removesuffix(ending)
            yield base + replaced
            if not replaced and len(base) > _LEAST_BASE and base[-1] == base[-2]:
                yield base[:-1]


@cache
def _base_forms() -> frozenset[str]:
    listing = files("lamina.text").joinpath("english_words.txt").read_text("utf-8")
    return frozenset(word for line in listing.splitlines() if not line.startswith("#") for word in line.split())

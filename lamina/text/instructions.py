"""Topics of standing instructions: of two about the same, the later one holds."""

from functools import cache

from lamina.text.patterns import regex
from lamina.text.standing import content_stems, phrases_of
from lamina.text.words import name_words


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LANGUAGES = _listed(
    """
    english german french spanish italian dutch portuguese polish russian ukrainian turkish arabic hebrew hindi bengali
    chinese mandarin cantonese japanese korean vietnamese thai indonesian malay greek swedish norwegian danish finnish
    czech slovak slovenian hungarian romanian bulgarian serbian croatian catalan basque galician persian farsi urdu
    tamil swahili latin esperanto welsh irish icelandic estonian latvian lithuanian albanian
    deutsch englisch französisch spanisch italienisch niederländisch polnisch russisch türkisch japanisch chinesisch
    español inglés francés alemán italiano portugués français anglais allemand espagnol italien portugais néerlandais
    inglese francese tedesco spagnolo português inglês francês alemão espanhol polski русском английском
    中文 英文 汉语 英语 德语 法语 日语 西班牙语 普通话 日本語 英語 ドイツ語 フランス語 中国語 韓国語 한국어 영어
    """
)
"""Names of languages, in some of them."""
_KINDS = {
    "language": LANGUAGES,
    "length": _listed(
        """
        short shorter brief briefly concise concisely terse long longer detailed detail verbose lengthy length
        kurz kurze kürzer knapp lang lange länger ausführlich ausführlicher cortas cortos breve breves brevemente largas
        largos detalladas courtes courte bref brève brèves brièvement longues longue détaillées
        """
    ),
    "units": _listed("metric imperial celsius fahrenheit kilometres kilometers miles kilograms pounds"),
    "emoji": ("emoji", "emojis", "émoji", "émojis", "emoticons", "emoticonos", "smileys"),
    "form of address": _listed("formal formally informal informally casual duz duze siez sieze tutoie vouvoie"),
}
_WRITTEN = {
    "length": ("简短", "简洁", "简单", "详细", "长一点", "短く", "長く", "詳しく", "簡潔"),
    "emoji": ("表情", "絵文字", "이모지"),
}
"""Words of kinds in scripts that part no words."""
_OF_ENDINGS = frozenset(
    name[:5]
    for name in _listed(
        """
        rule rules instruction instructions request said told asked wanted about forget ignore drop disregard cancel
        lift scrap remove longer anymore need needed necessary required have must applies apply allowed welcome fine
        okay
        feel free done over gone normal usual call calls called calling no ya
        regel regeln anweisung vergiss ignoriere streiche mehr nicht musst brauchst darfst nötig gilt deine antworten
        antwort dürfen können sein regla reglas instrucción olvida ignora quita hace falta necesario tienes que tus
        respuestas pueden ser otra vez nuevo más règle règles consigne oublie ignore plus besoin nécessaire faut tes
        réponses peuvent être nouveau
        nenn nenne mich llámame llames llamar appelle appeler moi
        benutze verwende nutze halte kein keine keinen niemals nie usa uses uso nunca ninguno mantén utilise utilises
        jamais garde pas des les une un der die das den dem zu las los que ne el la le
        """
    )
)
"""Stems of what says that an instruction ends rather than which one, and of how one is given."""
_SCARCELY_ALIKE = 0.5
_ELISION = regex.compile(r"\b[dlnmtsj]['’](?=\p{L})", regex.IGNORECASE)
_OF_ANY = frozenset(
    name[:5]
    for name in _listed(
        """
        always please again answer answers answering reply replies replying respond responses responding write writes
        writing speak speaking talk talking keep keeping use using make making units system future forward time times
        message messages explanation explanations style only language stick switch back go want like start stop quit
        antworte antworten schreib schreiben sprich sprechen rede reden immer stets künftig jetzt sofort wieder bitte
        auf ab nur noch mir mit kannst du nun an von zukunft
        responde responder contesta contestar escribe habla siempre partir ahora adelante en puedes volver favor por de
        réponds répondre écris parle toujours désormais dorénavant nouveau peux tu de en maintenant
        """
    )
)


_KIND_STEMS = {kind: frozenset(name[:5] for name in names) for kind, names in _KINDS.items()}


@cache
def _unspaced_languages() -> tuple[str, ...]:
    return tuple(name for name in LANGUAGES if not name.isascii() and len(name_words(name)) != 1)


def is_ended_by(instruction: str, ending: str) -> bool:
    """Report whether a statement that ends an instruction ends this one: it tells of the same, in whatever language.

    >>> is_ended_by("Keep your answers short.", "Your answers can be long again")
    True
    >>> is_ended_by("Never use emojis.", "Your answers can be long again")
    False
    """
    told, ended = _subjects(instruction), _subjects(ending)
    return bool(told and ended) and len(told & ended) / max(len(told), len(ended)) > _SCARCELY_ALIKE


def _subjects(text: str) -> frozenset[str]:
    """Return what an instruction tells of: its kinds, and the stems that belong to none."""
    stems = frozenset(content_stems(phrases_of(_ELISION.sub("", text)))) - _OF_ANY - _OF_ENDINGS
    kinds = {kind for kind, own in _KIND_STEMS.items() if not stems.isdisjoint(own)}
    kinds |= {kind for kind, words in _WRITTEN.items() if any(word in text for word in words)}
    if any(name in text for name in _unspaced_languages()):
        kinds.add("language")
    others = stems.difference(*_KIND_STEMS.values())
    return frozenset(kinds) or frozenset(stem for stem in others if stem.isascii() or len(stem) > 1)


def instruction_topic(text: str) -> str:
    """Return what an instruction is about, as text: its kind where it says no more, or else its stems.

    >>> instruction_topic("Always answer in German.") == instruction_topic("you can reply in English again")
    True
    >>> instruction_topic("Answer in German on Mondays") == instruction_topic("Answer in German")
    False
    """
    stems = frozenset(content_stems(phrases_of(text))) - _OF_ANY
    for kind, own in _KIND_STEMS.items():
        if stems and stems <= own:
            return kind
    if any(name in text for name in _unspaced_languages()):
        return "language"
    return " ".join(sorted(stems)) or " ".join(name_words(text))

"""Whether a question asks how things are now, and how a statement stands to the present: by words of several languages.

The lists are closed and small. They are signals for weights that are fitted, never rules that decide by themselves.
"""

from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from lamina.text.english import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, WEEKDAYS, listed
from lamina.text.patterns import regex
from lamina.text.words import name_words


def _phrases(text: str) -> frozenset[str]:
    """Return the phrases of one or two words that a text lists, separated by commas."""
    return frozenset(phrase.strip() for phrase in text.replace("\n", " ").split(",") if phrase.strip())


CHANGE = _phrases(
    """
    now, nowadays, these days, since, from now, from today, from tonight, from here, as of, no longer, anymore, any
    more, instead, new, newly, switched, moved, change, changed, replaced, update, updated, became, become, joined,
    left, took over, taken over, takes over, swapped, sold, migrated, finally, recently, just, today, currently, the
    moment, permanently, for good, yesterday, last week, last month, last night, tonight, this week, this month,
    this morning, gone, stopped, ended, closed, merged, done, cancelled, canceled, postponed, rescheduled, shifted,
    extended, actually, correction, scratch, wrong, mistake, sorry, in fact, turns out, turned out, rather,
    upgraded, renamed, reverted, jetzt, nun, seit, seitdem, inzwischen, mittlerweile, neu, neue, neuen, neuer, nicht
    mehr, keine mehr, ab heute, ab sofort, stattdessen, umgezogen, gewechselt, verschoben, endlich, gestern, heute,
    falsch, doch nicht, ahora, desde, ya no, nuevo, nueva, en vez, cambio, cambié, cambiado, hoy, ayer, al final,
    por fin, en realidad, maintenant, depuis, désormais, ne plus, nouveau, nouvelle, finalement, hier, agora, já
    não, novo, nova, adesso, ora, non più, nuovo, nuova, теперь, сейчас, уже не, новый, новая, вчера, сегодня, 现在,
    已经, 改成, 改为, 换成, 换了, 不再, 从今, 其实, 搞错, 今か,
    今は, もう, 変わ, 変更, 新し, やめ, 間違, 実は, 今日, 지금, 이제
    """
)
"""What is said of a change, or of a mistake that is put right."""
PAST = _phrases(
    """
    was, were, had, did, used to, back then, that year, that summer, that winter, that time, those days, earlier,
    once, originally, before, ago, until, at first, old, former, formerly, previous, previously, years ago, older,
    when i, when we, the beginning, in those, childhood, remember when, still, last summer,
    last winter, last spring, last autumn, last fall, the first, my first, our first, ever, back in, that point, that
    day, grew up, growing up, old days, letzten sommer, letzten winter, el primer, la primera, el verano, au début,
    war, waren, hatte, hatten, damals,
    früher, vorher, ursprünglich, zuvor, als ich, jahren, era, eran, fue, fueron, había, tenía, antes, entonces,
    aquel, aquella, vivía, trabajaba, hace años, étais, était, étaient, avait, avant, autrefois, antigamente, prima,
    allora, был, была, были, раньше, тогда, 以前, 当时, 那时, 之前, だっ, だった, 当時, 昔は, ころ, いた, 예전, 그때
    """
)
"""What is told of how it was."""
SUPPOSED = _phrases(
    """
    if, would, could, should, might, may, maybe, perhaps, dream, dreamt, dreamed, imagine, imagined, pretend,
    suppose, wish, joke, joking, kidding, lol, haha, offer, offered, declined, consider, considering, thinking of,
    thinking about, hypothetical, hypothetically, what if, scenario, novel, story, character, someday, one day,
    flyer, advert, says, said, rumour, rumor, proposal, propose, unless, wenn, würde, würden, könnte, vielleicht,
    falls, traum, geträumt, angenommen, angebot, si, sería, podría, quizá, quizás, tal vez, sueño, soñé, oferta,
    serait, pourrait, rêve, peut être, se fosse, talvez, если, бы, может,
    сон, 如果, 要是, 梦见, 也许, もし, たら, 夢を, かも, 만약,
    아마
    """
)
"""What is only thought, offered, dreamt or told by others."""
CORRECTION = _phrases(
    """
    wait, hang on, hold on, scratch, correction, mixed up, i mixed, mistake, wrong, misread, i meant, my bad,
    swapped the, put right, sorry no, actually, correct that, in fact, should be, forgot, misspoke, mistyped, typo,
    halt, falschen, vertan, verwechselt, korrektur, moment, perdona, me equivoqué, error, corrijo, pardon, erreur,
    je me, scusa, sbagliato, ошиб, не так, 搞错, 看错, 不对, 说错, 更正, 間違, 訂正, 違い, 아니, 잘못
    """
)
"""Openings of a sentence that corrects the one before."""
ACKNOWLEDGED = _phrases(
    """
    noted, updated, changed, corrected, saved, entered, understood, recorded, added, set, moved, replaced, switched,
    congratulations, sorry, notiert, geändert, korrigiert, vermerkt, eingetragen, ändere, trage, anotado, apuntado,
    corregido, cambiado, noté, corrigé, annotato, corretto, записал, исправил, 记下, 改好, 更新, 承知, 変更, 修正,
    바꾸, 수정
    """
)
"""What an assistant says to a statement of how things are."""
_EMPTY = listed(
    """
    ok okay see noted got thanks thank good great nice sure understood alright right cool fine perfect know hear sounds
    well lovely wonderful awesome excellent welcome glad done congratulations re s
    verstanden alles klar gut danke gern gerne notiert prima super schön aha ist das freut mich
    entendido vale gracias claro perfecto bien bueno genial anotado muy
    compris accord merci parfait noté entendu très
    capito grazie va bene perfetto certo ricevuto accordo
    entendi obrigado obrigada beleza ótimo muito
    понятно хорошо спасибо ясно понял поняла ладно отлично
    好的 好 明白 明白了 知道了 我知道了 收到 谢谢
    わかりました 了解 了解です 了解しました 承知しました はい ありがとう ありがとうございます なるほど
    네 알겠습니다 감사합니다 좋아요
    """
)
"""Of these, and of function words, is an answer made that only shows that something was heard."""
OTHERS = _phrases(
    """
    my brother, my sister, my cousin, my neighbour, my neighbor, my niece, my nephew, my aunt, my uncle, my friend,
    my colleague, my boss, my husband, my wife, my mother, my father, my mum, my dad, my mom, my son, my daughter,
    my flatmate, my sis, my bro, brother in, neighbour's, neighbor's, sister's, brother's, friend's, colleague's,
    cousin's, flatmate's, the neighbour, the neighbours, a friend, a colleague, the other, other team, another team,
    a competitor, our rivals, somebody else's, someone else's, mein bruder, meine schwester, mein nachbar,
    mi hermano, mi hermana, mi primo, mi prima, mon frère, ma sœur, mia cugina, a minha, моя, мой брат, 朋友, 同事,
    友達, 同僚, 친구
    """
)
"""People beside the one who speaks, and others of a kind."""
_UNREAL = _phrases(
    """
    dream, dreamt, dreamed, nightmare, imagine, imagined, pretend, suppose, supposing, what if, hypothetical,
    hypothetically, thought experiment, kidding, joke, joking, april fool, april fools, novel, scene, chapter, diary,
    flyer, advert, advertisement, scam, offered me, offered us, an offer, declined, turned down, said no, voted no,
    no thanks, should we, should i, if i, if we, if ever, someday, one day, maybe in, wants us, wants me, im traum,
    traum, träumte, geträumt, albtraum, angenommen, angebot, wenn ich, sueño, soñé, oferta, si yo, si me, rêve, rêvé,
    si je, sogno, sognato, sonho, sonhei, сон, приснилось, если бы, 如果, 梦见, 要是, 夢で, 夢を, もし, 꿈에, 만약
    """
)
_FORMER = _phrases(
    """
    when i, when we, back then, in those, those days, those years, years ago, till i, until i, used to, that year,
    the years, the year, that summer, that winter, that spring, that autumn, last summer, last winter, before that,
    at first, at that, that point, formerly, als kind, als ich, damals, früher, de niño, de niña, cuando era,
    en aquel, quand j'étais, à l'époque, da bambino, da bambina, quando ero, quando era, в детстве, тогда, раньше,
    小时, 当时, 以前, 子供, 当時, 昔は, 어릴
    """
)
_FIRST_PERSON = listed(
    "i i'm i've i'd i'll my me we we're we've our us ours mine ich wir mein meine unser unsere yo mi nosotros je j'ai "
    "nous mon ma io mio mia noi eu meu minha nós я мы мой моя"
)
_OF_THIRD_PERSON = regex.compile(
    r"\A\W{0,4}+(?:\w{1,20}[.!,] )?(?:they|their|she|he|her|his|ella|él|ellos|elle|ils|sie|er|lei|lui|она|он|они|他|"
    r"她|他们|彼|彼女)\b",
    regex.IGNORECASE,
)
_QUOTED = regex.compile(r'"[^"\n]{8,400}+"|“[^”\n]{8,400}+”|«[^»\n]{8,400}+»|„[^“”\n]{8,400}+[“”]|「[^」\n]{8,400}+」')
_MOSTLY = 0.45
_OPENING = 3
_PAST_VERBS = frozenset({"was", "were", "had", "did", "been"})
_PRESENT_VERBS = listed(
    "am is are has have i'm we're they're it's he's she's that's there's i've we've here's you're bin ist sind bist "
    "soy es son está estoy están suis est sont sou é sono è"
)
_NUMERALS = frozenset((*NUMBER_WORDS, *MONTHS, *WEEKDAYS)) - {"may"}
_TOLD = listed(
    "came went wrote said got made took gave bought found told left won lost sent met chose began paid broke built "
    "grew fell kept ran sang sold spoke spent taught thought threw wore saw brought caught drew drove ate felt flew "
    "forgot heard hid knew led lent rose stole swam woke"
)
_OF_THE_PRESENT = listed(
    "am is are do does has have can could should must will would may shall isn't aren't doesn't don't hasn't haven't "
    "who's what's where's be being"
)
_ASKS = regex.compile(r"[?\uff1f\u061f\u037e\u055e\u1367]\W*$")
_NO_WORD = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_SHORT_ANSWER = 8
_SHORTEST_PARTICIPLE = 5
_YEAR = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")

_PAST_QUESTION = _phrases(
    """
    was, were, did, had, used to, ago, originally, initially, at first, before, earlier, previous,
    previously, former, formerly, back then, last year, last month, last week, last summer, last winter, last
    spring, yesterday, war, waren, hatte, hatten, wurde, wurden, damals, früher, zuvor, gab, era, eran, fue, fueron,
    había, tenía, estaba, vivía, trabajaba, usaba, tocaba, hacía, antes, était, étaient, avait, avant, estava,
    tinha, aveva, был, была, было, были, раньше, 以前, 当时,
    那时, 时候, 之前, だっ, だった, 当時, まし, いた, った, 昔は, 昔ど, 昔何, 昔誰, 예전
    """
)
_PRESENT_QUESTION = _phrases(
    """
    now, nowadays, currently, current, these days, today, the moment, at present, the end, finally, still, latest,
    anymore, most recent, most recently, up to, jetzt, derzeit, zurzeit, aktuell, aktuelle, aktuellen, heute,
    inzwischen, mittlerweile, ahora, actual, actualmente, hoy, maintenant, actuellement, agora, atualmente, adesso,
    attualmente, сейчас, теперь, 现在, 目前, 如今, 最新, 現在, 最近, 今の, 지금, 현재
    """
)
_AMOUNTS = _phrases(
    """
    when, date, how many, how much, how long, how old, how often, how big, how heavy, how high, how far, what time,
    which day, what day, year, month, version, number, port, price, size, limit, cost, rate, deadline, weigh,
    maximum, minimum, temperature, wann, wie viele, wie viel, wieviel, cuándo, cuánto, cuánta, cuántos, cuántas,
    quand, combien, quando, quanto, quanti, когда, сколько, 么时, 多少, いつ, 何時, 何日, いく, 언제, 얼마
    """
)
_PERSONS = listed("who whose whom wer wem wen wessen quién quiénes qui quem chi кто 谁 誰 誰が 谁是 누가")


def phrases_of(text: str) -> tuple[str, ...]:
    """Return the folded words of a text, and each two that stand next to each other."""
    words = name_words(text)
    return (*words, *(f"{first} {second}" for first, second in pairwise(words)))


def asks_about_present(phrases: Sequence[str], *, as_of: bool) -> bool:
    """Report whether a question asks how things are: at the moment it names, or now, unless it tells of the past.

    >>> asks_about_present(phrases_of("Where does Ann live?"), as_of=False)
    True
    >>> asks_about_present(phrases_of("Where did Ann live?"), as_of=False)
    False
    >>> asks_about_present(phrases_of("Who composed the song?"), as_of=False)
    False
    """
    return as_of or names_present(phrases) or (_PAST_QUESTION.isdisjoint(phrases) and not _is_told(phrases))


def _is_told(phrases: Sequence[str]) -> bool:
    """Report whether the verb of an English question tells of the past: "Who composed it?"."""
    return _OF_THE_PRESENT.isdisjoint(phrases) and any(word in _TOLD or _is_participle(word) for word in phrases)


def names_present(phrases: Sequence[str]) -> bool:
    """Report whether a question names the present: "now", "these days", "still"."""
    return not _PRESENT_QUESTION.isdisjoint(phrases)


def asks(text: str) -> bool:
    """Report whether a text ends in a question."""
    return _ASKS.search(text) is not None


def says_nothing(text: str) -> bool:
    """Report whether an answer shows no more than that something was heard: "Okay, noted."."""
    words = _NO_WORD.sub(" ", text.casefold()).split()
    return len(words) <= _SHORT_ANSWER and all(word in _EMPTY or word in FUNCTION_WORDS for word in words)


def asks_for_amount(phrases: Sequence[str]) -> bool:
    """Report whether a question asks for a number, a date or a duration."""
    return not _AMOUNTS.isdisjoint(phrases)


def asks_for_person(phrases: Sequence[str]) -> bool:
    """Report whether a question asks who."""
    return not _PERSONS.isdisjoint(phrases)


def share_of(phrases: Sequence[str], listed: frozenset[str]) -> float:
    """Return how many of the phrases are listed, as a share of three; more count no more."""
    return min(sum(map(listed.__contains__, phrases)), 3) / 3


def misleads(text: str, phrases: Sequence[str], year: int, asked: Container[str] = frozenset()) -> bool:
    """Report whether a statement tells of no present of its speaker's.

    It does not where it is dreamt, supposed, offered or declined, tells of how it was, quotes, or begins with a person
    beside the one who speaks, if the question does not ask for that person.

    Args:
        text: The statement.
        phrases: Its phrases.
        year: When it was made.
        asked: The phrases of the question.
    """
    if not _UNREAL.isdisjoint(phrases) or not _FORMER.isdisjoint(phrases) or names_year_before(text, year):
        return True
    if sum(len(match[0]) for match in _QUOTED.finditer(text)) >= _MOSTLY * len(text):
        return True
    if _OF_THIRD_PERSON.match(text) is not None and _FIRST_PERSON.isdisjoint(phrases):
        return True
    first = [phrase for phrase in phrases if " " in phrase][:_OPENING] + list(phrases[:_OPENING])
    return any(phrase in OTHERS and phrase not in asked for phrase in first)


def tense(phrases: Sequence[str]) -> float:
    """Return how much a text speaks of the past rather than of the present, -1 to 1."""
    past = sum(map(_PAST_VERBS.__contains__, phrases)) + len(list(filter(_is_participle, phrases)))
    present = sum(map(_PRESENT_VERBS.__contains__, phrases))
    return (past - present) / (past + present + 1)


def _is_participle(word: str) -> bool:
    return word.endswith("ed") and len(word) >= _SHORTEST_PARTICIPLE and " " not in word


def has_number(text: str, phrases: Sequence[str]) -> bool:
    """Report whether a text has a digit, or a word for a number, a day or a month."""
    has_digit = not text.isalpha() and any(map(str.isdigit, text))
    return has_digit or not _NUMERALS.isdisjoint(phrases)


def names_year_before(text: str, year: int) -> bool:
    """Report whether a text names a year before another."""
    return any(int(found) < year for found in _YEAR.findall(text))


def content_stems(phrases: Sequence[str]) -> Iterator[str]:
    """Yield the first five letters of each word that is no English function word, which most of its forms share."""
    return (word[:5] for word in phrases if " " not in word and word not in FUNCTION_WORDS)

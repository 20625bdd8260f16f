"""Topics of standing instructions: of two about the same, the later one holds."""

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
    "length": _listed("short shorter brief briefly concise concisely terse long longer detailed detail verbose"),
    "units": _listed("metric imperial celsius fahrenheit kilometres kilometers miles kilograms pounds"),
    "emoji": ("emoji", "emojis", "emoticons", "smileys"),
    "form of address": _listed("formal formally informal informally casual duz duze siez sieze tutoie vouvoie"),
}
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


def instruction_topic(text: str) -> str:
    """Return what an instruction is about, as text: its kind where it says no more, or else its stems.

    >>> instruction_topic("Always answer in German.") == instruction_topic("you can reply in English again")
    True
    >>> instruction_topic("Answer in German on Mondays") == instruction_topic("Answer in German")
    False
    """
    stems = frozenset(content_stems(phrases_of(text))) - _OF_ANY
    for kind, names in _KINDS.items():
        own = {name[:5] for name in names}
        if stems and stems <= own:
            return kind
    if any(name in text for name in LANGUAGES if not name.isascii() and len(name_words(name)) != 1):
        return "language"
    return " ".join(sorted(stems)) or " ".join(name_words(text))

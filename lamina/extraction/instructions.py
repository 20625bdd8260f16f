"""Read standing instructions: how a user wants to be answered from now on, and which of these no longer hold.

An instruction counts if it is said to last ("always", "never", "from now on") and tells of answers, not of work
("Always run the linter" is a team's rule), or can only be meant to last ("Keep your answers short"). English, and the
language of answers in a few others. In doubt it is none.
"""

from collections.abc import Iterator

import regex

from lamina.core.profiles import INSTRUCTIONS
from lamina.extraction.facts import Fact
from lamina.extraction.speech import Statement
from lamina.text.instructions import LANGUAGES

MAX_INSTRUCTION_CHARS = 300

_LANGUAGE = rf"(?:{'|'.join(LANGUAGES)})"
_ANSWERS = "(?:answers?|replies|responses?|messages|explanations|summaries|texts|emails)"
_LASTING = (
    r"(?:always|never(?: ever)?|from (?:now|here|today) on(?:wards?)?|going forward|in (?:the )?future|as of (?:now|"
    r"today)|every (?:single )?time|"
    r"until (?:further notice|i (?:say|tell you) otherwise)|for good)"
)
_LEAD = (
    r"\W*(?:(?:and|also|so|but|ok|okay|hey|hi|btw|by the way|one more thing|another thing|new rule|rule|note|reminder|"
    r"remember|please|just|oh|right|stop(?=[.!])|listen|actually|thanks|thank you|well|now)\b\W*(?:to )?)*+"
    r"(?:(?:i (?:want|need|'d like|would like|expect)|i'd like|you (?:should|must|have to|need to|are to)) (?:you "
    r")?(?:to )?)?"
)
_TONE = (
    "(?:emojis?|emoticons|smileys|exclamation (?:marks|points)|bullet points|jargon|slang|small talk|pleasantries|"
    "disclaimers|apologies|flattery)"
)
_MANNER = (
    rf"(?:{_TONE}|bullets|bulleted lists|numbered lists|tables|markdown|headings|code blocks|abbreviations|greetings|"
    r"plain (?:text|english|language|words)|simple (?:words|language)|(?:the )?(?:metric|imperial)(?: system| units)?|"
    r"si units|celsius|fahrenheit|kilomet(?:re|er)s|miles|kilograms|pounds|euros|dollars|"
    r"(?:british|american|uk|us) (?:english|spelling)|the (?:24|12)-hour clock|(?:24|12)[- ]hour (?:time|times|clock|"
    r"format)|iso dates|"
    r"my (?:first |last |full )?name|the (?:formal|informal) (?:you|form|address)|(?:source|sources|links|references|"
    r"citations)|"
    r"(?:a |the )?(?:tl;?dr|summary at the end|sources?))"
)
_SPEAKING = (
    rf"(?:(?:answer|reply|respond|speak|talk)(?! (?:the (?:phone|door)|for|on))|write (?:to me|back|in (?:{_LANGUAGE}|"
    rf"plain))|address me|greet me|call me|explain|"
    rf"summari[sz]e|translate|keep (?:it|them|things|(?:your|the|all|my) (?:\w+ )?{_ANSWERS})\b|(?:start|begin|end|"
    rf"finish|open|close) (?:your|every|each) {_ANSWERS}|"
    rf"(?:use|include|add|write in|stick to|quote|give(?: me)?|show(?: me)?|send(?: me)?|convert to) (?:only |any "
    rf")?{_MANNER}|cite|apologi[sz]e|"
    r"be (?:brief|concise|short|blunt|direct|honest|frank|formal|informal|polite|terse|to the point|more \w+|less \w+)|"
    r"mention|bring up|tell me|give me(?! up| away| a break)|show me|send me|recommend|suggest|remind me|ask me)"
)
_POINTS = regex.compile(r"\b(?:that|this|it|those|these|so|him|her|them)(?: again| any ?more)?\W*$", regex.IGNORECASE)
_STANDING = tuple(
    regex.compile(rf"\A{_LEAD}(?:{pattern})", regex.IGNORECASE)
    for pattern in (
        (
            rf"{_LASTING}\b,? (?:please )?(?:i want you to |you (?:should|must) )?(?:{_LASTING} )?(?:please "
            rf")?{_SPEAKING}\b"
        ),
        rf"(?:please )?{_SPEAKING}\b[^.!?]*? (?:please )?{_LASTING}\W*(?:please\W*)?$",
        rf"{_LASTING}\b,? no (?:more )?{_MANNER}\b",
        rf"keep (?:all )?(?:of )?(?:your|my) {_ANSWERS}\b",
        rf"(?:your|my|all) {_ANSWERS} (?:should|must|have to|need to) (?:always )?(?:be|come|have|contain|fit|stay)\b",
        (
            rf"(?:i (?:want|'d like|would like|need|prefer) |i'd like )?(?:all )?(?:your|my|the) {_ANSWERS} (?:to be "
            rf")?(?:always |only )?(?:in {_LANGUAGE}|short|brief|concise)\b"
        ),
        (
            rf"(?:don't|do not|stop|quit|no more|avoid|skip|drop|leave out|please no) (?:(?:use|using|add|adding|"
            rf"include|including|with|the|any|all)\b ?)*{_TONE}\b"
        ),
        r"stop (?:apologi[sz]ing|calling me)\b",
    )
) + tuple(
    regex.compile(rf"\A(?:{pattern})", regex.IGNORECASE)
    for pattern in (
        (
            rf"(?=.*\b(?:immer|stets|ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|künftig|in zukunft|nur "
            rf"noch)\b)\W*(?:bitte |ab \w+,? |von \w+ an,? |künftig,? |in zukunft,? )*(?:antworte|schreib|sprich|"
            rf"rede)\w*\b.*\bauf {_LANGUAGE}\b"
        ),
        (
            rf"(?=.*\b(?:siempre|a partir de ahora|de ahora en adelante|desde ahora)\b)\W*(?:por favor,? |siempre |a "
            rf"partir de ahora,? |de ahora en adelante,? |desde ahora,? )*(?:responde|respóndeme|contesta|contéstame|"
            rf"escribe|escríbeme|habla|háblame)\b.*\ben {_LANGUAGE}\b"
        ),
        (
            rf"(?=.*\b(?:toujours|désormais|dorénavant|à partir de maintenant)\b)\W*(?:s'il te plaît,? |désormais,? |"
            rf"dorénavant,? |à partir de maintenant,? )*(?:réponds|répondez|écris|écrivez|parle|parlez)\b.*\ben "
            rf"{_LANGUAGE}\b"
        ),
        rf"\W*(?:请)?(?:你)?(?:以后|今后|从现在(?:开始|起)|从今以后|总是|一直|每次).{{0,12}}(?:用|说|讲){_LANGUAGE}",
        rf"\W*(?:これから|今後|いつも|常に|毎回).{{0,12}}{_LANGUAGE}で.{{0,6}}(?:答え|返|書い|話し|回答)",
    )
)
_AGAIN = "(?:again|any ?more|any longer|now)"
_REVOKED = tuple(
    regex.compile(rf"\A(?:{pattern})", regex.IGNORECASE)
    for pattern in (
        (
            rf"{_LEAD}(?:you (?:can|may|could|might)|feel free to|it's (?:ok|okay|fine) to)(?: (?:now|just|also))? "
            rf"(?P<told>(?:{_SPEAKING}|use {_MANNER})\b[^.!?,;]*?) again\b"
        ),
        (
            rf"{_LEAD}you (?:no longer|don't|do not|needn't|need not)(?: (?:need|have) to| must)? (?P<told>(?:always "
            rf")?{_SPEAKING}\b[^.!?,;]*?)(?: {_AGAIN})?\W*$"
        ),
        rf"{_LEAD}(?:go|switch|let's go|let's switch|come)? ?back to (?P<told>{_LANGUAGE})\b",
        (
            rf"{_LEAD}(?:stop|quit) (?P<told>(?:answering|replying|responding|writing|speaking|talking)(?: to me)? in "
            rf"{_LANGUAGE})\b"
        ),
        (
            rf"{_LEAD}(?:forget|ignore|drop) (?:that|what|the (?:rule|instruction)|about|that rule)(?: i (?:said|asked|"
            rf"told you|wanted)(?: you)?(?: about| to)?| about| to| that)* (?P<told>(?:\w+ing\b|{_SPEAKING}\b)[^.!?]*)"
        ),
        (
            rf"\W*du (?:kannst|darfst)(?: \w+)? wieder (?P<told>(?:auf )?{_LANGUAGE}) (?:antworten|schreiben|sprechen|"
            rf"reden)"
        ),
        rf"\W*(?:ya )?puedes (?:volver a )?(?P<told>(?:responder|contestar|escribir|hablar)(?:me)? en {_LANGUAGE})\b",
        (
            rf"\W*tu peux (?:de nouveau |à nouveau )?(?P<told>(?:répondre|écrire|parler) (?:de nouveau |à nouveau )?en "
            rf"{_LANGUAGE})\b"
        ),
    )
)


def instructions_of(statement: Statement) -> Iterator[Fact]:
    """Yield the instruction that a sentence gives, or ends; nothing within an invented frame, or of another's."""
    text = statement.masked.strip()
    if not statement.own or len(text) > MAX_INSTRUCTION_CHARS or text.endswith(("?", ":")):
        return
    for pattern in _REVOKED:
        if match := pattern.match(text):
            yield Fact(withdrawn={INSTRUCTIONS: [match["told"].strip()]}, is_noted=False)
            return
    if any(pattern.match(text) for pattern in _STANDING) and not _POINTS.search(text):
        yield Fact({INSTRUCTIONS: [statement.text.strip()]}, is_noted=False)

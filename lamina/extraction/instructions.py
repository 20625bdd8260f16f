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


def _any_behind(lead: str, *patterns: str) -> "regex.Pattern[str]":
    """Return one pattern for many that begin alike: their lead, which costs most, is read once."""
    return regex.compile(rf"\A{lead}(?:{'|'.join(patterns)})", regex.IGNORECASE)


_STANDING = (
    _any_behind(
        _LEAD,
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
    ),
    # One by one: in one pattern their looks ahead take time by the square of the length.
    *(
        _any_behind("", pattern)
        for pattern in (
            (
                rf"(?=.*?\b(?:immer|stets|ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|künftig|in zukunft|nur "
                rf"noch)\b)\W*(?:bitte |ab \w+,? |von \w+ an,? |künftig,? |in zukunft,? )*(?:antworte|schreib|sprich|"
                rf"rede)\w*\b.*?\bauf {_LANGUAGE}\b"
            ),
            (
                rf"(?=.*?\b(?:siempre|a partir de ahora|de ahora en adelante|desde ahora)\b)\W*(?:por favor,? |siempre |a "
                rf"partir de ahora,? |de ahora en adelante,? |desde ahora,? )*(?:responde|respóndeme|contesta|contéstame|"
                rf"escribe|escríbeme|habla|háblame)\b.*?\ben {_LANGUAGE}\b"
            ),
            (
                rf"(?=.*?\b(?:toujours|désormais|dorénavant|à partir de maintenant)\b)\W*(?:s'il te plaît,? |désormais,? |"
                rf"dorénavant,? |à partir de maintenant,? )*(?:réponds|répondez|écris|écrivez|parle|parlez)\b.*?\ben "
                rf"{_LANGUAGE}\b"
            ),
            rf"\W*(?:请)?(?:你)?(?:以后|今后|从现在(?:开始|起)|从今以后|总是|一直|每次).{{0,12}}(?:用|说|讲){_LANGUAGE}",
            rf"\W*(?:これから|今後|いつも|常に|毎回).{{0,12}}{_LANGUAGE}で.{{0,6}}(?:答え|返|書い|話し|回答)",
        )
    ),
    # More of how instructions are given, in other languages.
    _any_behind(
        r"\W*",
        r"(?:bitte )?(?:benutze?|verwende|nutze)(?: bitte)? (?:nie(?:mals)?|keine)(?: mehr)? (?:emojis?|smileys|ausrufezeichen|aufzählungen)\b",
        r"(?:bitte )?halte? (?:deine|die) antworten (?:immer |bitte )?(?:kurz|knapp|kürzer)\b",
        r"(?:bitte )?antworte(?: mir)? (?:immer|stets|ab jetzt|künftig) (?:kurz|knapp|ausführlich|förmlich)\b",
        r"(?:bitte )?nenn(?:e)? mich (?:immer|ab jetzt|künftig|stets) ",
        r"(?:por favor,? )?(?:no uses|nunca uses|no utilices|nunca utilices)(?: más)? (?:emojis?|emoticonos|listas)\b",
        r"(?:por favor,? )?mantén (?:siempre )?(?:tus|las) respuestas (?:cortas|breves)\b",
        r"(?:por favor,? )?(?:responde|contesta)(?:me)? siempre (?:brevemente|con brevedad|de forma breve)\b",
        r"(?:por favor,? )?llámame siempre ",
        r"(?:s'il te plaît,? )?n['’]utilise (?:jamais|pas|plus)(?: jamais)? (?:d['’]|des? )(?:émojis?|emojis?|listes)\b",
        r"(?:s'il te plaît,? )?garde (?:toujours )?(?:tes|les) réponses (?:courtes|brèves)\b",
        r"(?:s'il te plaît,? )?réponds (?:toujours|désormais) (?:brièvement|en bref)\b",
        r"(?:s'il te plaît,? )?appelle-moi (?:toujours|désormais) ",
        r"(?:请)?(?:以后)?(?:不要|别)(?:再)?(?:用|使用)表情",
        r"(?:请)?(?:以后)?(?:你的)?(?:回答|回复|答案)(?:请)?(?:都|总是|始终)?(?:要|保持)?(?:简短|简洁)",
        r"(?:今後|これから|もう)?(?:は)?絵文字(?:は|を)使わないで",
        r"(?:回答|返事|返答)は(?:いつも|常に|必ず)?短く",
    ),
)
# What says that an instruction holds no longer. The sentence must also speak to the one who answers, or of answers.
_FAREWELL = rf"(?:(?:call|calling|address|greet) me|cite|(?:answer|reply|respond|write|speak|talk)\w*(?: to me)? in {_LANGUAGE})"
_RELEASED = regex.compile(
    r"\b(?:no longer (?:have to|needs?|needed|necessary|required|must|wanted|want|appl(?:y|ies)|matters?|wish)|"
    r"(?:no|not) (?:need|necessary|required)|(?:don't|do not|needn't|need not)"
    rf" (?:have|need)|needn't|need not|(?:don't|do not) {_FAREWELL}\b.* (?:any ?more|any longer)|"
    r"(?<!(?:\bnever|\bnot|n['’]t|\balways)(?: ever)? )"
    r"(?:forget|ignore|disregard|drop|scrap|cancel|lift|remove|undo|skip) (?:about )?"
    r"(?:the|that|my|this|all|any) (?:\w+ )?(?:rules?|instructions?|requests?|wish)|"
    rf"wieder auf {_LANGUAGE}|(?:musst|brauchst|müssen) \w+ nicht|"
    r"(?:musst|brauchst|müssen|brauchen|nenne? mich)\b.* nicht (?:mehr|länger)|nicht (?:mehr|länger) (?:nötig|notwendig)|"
    r"keine? \p{L}+ mehr (?:nötig|notwendig)|"
    r"(?:vergiss|ignoriere?|streiche?) (?:die|meine) (?:regel|anweisung|bitte)|"
    r"ya no (?:(?:me )?(?:llames|hables|respondas|contestes|escribas)|tienes que|necesitas|hace falta|es necesario)|"
    r"no hace falta|no es necesario|no tienes que|"
    r"(?:olvida|ignora|quita) (?:la|mi) (?:regla|instrucción|petición)|"
    r"plus besoin|pas besoin|n['’]est plus (?:nécessaire|obligatoire|la peine)|n['’]as plus (?:à|besoin)|"
    r"ne m['’]appelle[rsz]* plus|tu n['’]es plus obligée?|"
    r"(?:oublie|ignore) (?:la|ma) (?:règle|consigne|demande))\b"
    r"|(?<!请)不用再|(?<!请)不必|不需要再|可以再|又可以|可以重新|(?:忘掉|忘了|取消).{0,12}(?:规则|要求|规定)"
    r"|また.{0,20}(?:いい|大丈夫)|もう.{0,20}(?:なくて|必要(?:は|が)?(?:ない|ありません))"
    r"|(?:ルール|指示).{0,6}(?:忘れ|取り消)"
    rf"|\A{_LEAD}(?:(?:please )?(?:go|switch|come|get)? ?)?back to\b",
    regex.IGNORECASE,
)
# "Again" ends an instruction behind a permission alone: "you're using emojis again" complains, "keep it short again" renews.
_ONCE_MORE = regex.compile(r"\b(?:again|wieder|otra vez|de nuevo|volver a|(?:à|de) nouveau)\b", regex.IGNORECASE)
_PERMITTED = regex.compile(
    r"\b(?:can|may|could|might|free|fine|ok|okay|welcome|allowed|permitted|acceptable|all ?right|kannst|können|darfst|dürfen|"
    r"darf|erlaubt|willkommen|in ordnung|puedes|pueden|puede|permitid[oa]s?|bienvenid[oa]s?|peux|peuvent|peut|"
    r"permise?s?|autorisée?s?|bienvenue?s?)\b(?!['’]t| not\b| nicht\b| pas\b)",
    regex.IGNORECASE,
)
_TO_WHO_ANSWERS = regex.compile(
    r"\b(?:you (?:can|may|could|might|no longer|don't|do not|needn't|need not|are free|needn)|no need|"
    rf"your (?:\w+ )?{_ANSWERS}|call me|calling me|forget|ignore|disregard|drop|scrap|cancel|lift|undo|"
    r"(?:answers?|replies|responses|emojis?|emoticons|smileys|bullet points) (?:are|is|may|can|need)|needed|necessary|"
    r"required|du|dein|deine|deinen|dich|antworten?|vergiss|ignoriere?|streiche?|nenn|nenne|tú|tus?|puedes|llames|"
    r"tienes|respuestas|olvida|ignora|hace falta|es necesario|tes?|réponses?|peux|oublie|appelle|m['’]appelle[rs]?|besoin|"
    r"you're)\b|你|回答|回复|表情|规则|要求|称呼|叫我|ください|いい|使って|答え|返事|呼|ルール|指示",
    regex.IGNORECASE,
)
_OF_SPEAKER = regex.compile(
    r"\A\W*(?:and |but |so |und |y |et )?(?:i|i'm|i've|we|she|he|they|my (?!answers|replies)|ich|wir|mein|er|yo|mi|nosotros|je|"
    r"nous|mon|il|elle)\b|\A\W*(?:我|私)",
    regex.IGNORECASE,
)
# "You can use emojis again in the report": for one thing alone.
_LIMITED = regex.compile(
    r"\b(?:in|for|during|at|when|if|unless|until|only|except|im|in der|in dem|für|bei|nur|wenn|en (?:el|la|los|este)|para|"
    r"solo|sólo|si|dans|pour|sur|seulement|quand) (?!future\b|general\b|me\b|mich\b|mí\b|moi\b|now\b|the future\b|"
    rf"{_LANGUAGE}\b|english|length)\p{{L}}|只|报告|の中|だけ|レポート",
    regex.IGNORECASE,
)
# All of them end by a clause that begins with it and names nothing but instructions to the one who answers: "ignore all
# eslint rules" and "never ignore any of my instructions" tell of others.
_OF_ALL = regex.compile(
    rf"\A(?:{_LEAD}(?:(?:let's|you (?:can|may)(?: now)?) )?(?:"
    r"(?:forget|ignore|disregard) (?:about )?(?:all|any|every)(?: of)?(?: (?:my|these|those|the|your))?"
    r"|(?:drop|cancel|scrap|lift|undo) (?:all|any|every)(?: of)? (?:my|these|those|your))"
    r"(?: (?:standing|previous|earlier|old|prior|former|personal|answering))? (?:rules?|instructions?|wishes)"
    r"(?: (?:that |which )?i(?:'ve| have)? (?:gave|given|told|set|made)(?: you)?| (?:about|on|for|regarding) (?:how (?:you|to)"
    rf" (?:\w+ )?{_SPEAKING}|your {_ANSWERS})\b.*)?"
    r"(?:[, ]*(?:please|now|again|so far|until now|from now on|for now|thanks|thank you|that i gave))*\W*\Z"
    r"|\W*(?:bitte )?(?:vergiss|ignoriere?|streiche?)(?: bitte)? alle (?:(?:meine|deine|diese|die) )?(?:\w+en )?"
    r"(?:regeln|anweisungen|instruktionen)(?: bitte| wieder| für dich)?\W*\Z"
    r"|\W*(?:por favor,? )?(?:olvida|ignora|cancela) tod[ao]s (?:mis|las|tus|estas) (?:reglas|instrucciones)(?:,? por favor)?\W*\Z"
    r"|\W*(?:s'il te plaît,? )?(?:oublie|ignore|annule) toutes (?:mes|les|tes|ces) (?:règles|consignes|instructions)"
    r"(?:,? s'il te plaît)?\W*\Z"
    r"|\W*(?:请|那|那就)?(?:你)?(?:忘掉|忘记|取消|忽略)(?:我的?)?所有(?:的|我的?|给你的|这些|之前的?|以前的?)*(?:规则|要求|指示)(?:吧|了)*\W*\Z"
    r"|\W*(?:これまでの|私の|今までの)*(?:すべて|全て|全部)の(?:ルール|指示)(?:を|は)?(?:忘れて?|取り消して?|無視して?)"
    r"(?:る|ください|下さい|ね|よ|いい|です)*\W*\Z)",
    regex.IGNORECASE,
)
_DENIED_OR_SUPPOSED = regex.compile(
    r"\b(?:never|not|nor|if|when|unless|nie|niemals|nicht|wenn|falls|nunca|si|cuando|jamais|pas|quand)\b|n['’]t\b|不|别|如果",
    regex.IGNORECASE,
)
_CLAUSE = regex.compile(
    r"[,;，、] ?(?:(?:but|and|aber|und|pero|y|mais|et|但|但是)\b ?)?| (?:but|aber|pero|mais) ", regex.IGNORECASE
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
            rf"{_LEAD}you (?:needn't|need not|(?:no longer|don't|do not) (?:need|have) to|no longer must) (?P<told>(?:always "
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
        if (match := pattern.match(text)) and not _LIMITED.search(text, match.end("told")):
            yield Fact(withdrawn={INSTRUCTIONS: [match["told"].strip()]}, is_noted=False)
            return
    if _ends_all(text):
        yield Fact({INSTRUCTIONS: None}, is_noted=False)
        return
    ended = [clause for clause in _CLAUSE.split(text) if _ends_instruction(clause)]
    if ended:
        yield Fact(withdrawn={INSTRUCTIONS: ended}, is_noted=False)
        return
    if _is_standing(text):
        yield Fact({INSTRUCTIONS: [statement.text.strip()]}, is_noted=False)


def _is_standing(text: str) -> bool:
    return any(pattern.match(text) for pattern in _STANDING) and not _POINTS.search(text)


def _ends_all(text: str) -> bool:
    """Report whether a clause ends all instructions, and none before it denies or supposes that."""
    begun = [0, *(match.end() for match in _CLAUSE.finditer(text))]
    return any(_OF_ALL.search(text[at:]) and not _DENIED_OR_SUPPOSED.search(text[:at]) for at in begun)


def _ends_instruction(clause: str) -> bool:
    """Report whether a clause says that an instruction holds no longer: which one, the profile decides by likeness."""
    # First what costs least and tells most: nearly all clauses speak of something else.
    return (
        _OF_SPEAKER.match(clause) is None
        and _TO_WHO_ANSWERS.search(clause) is not None
        and _LIMITED.search(clause) is None
        and (_RELEASED.search(clause) or (_ONCE_MORE.search(clause) and _PERMITTED.search(clause))) is not None
        and not _is_standing(clause)
    )

"""Tell interactions: a meeting, a task that is handed over, a turn that calls tools.

In the languages of the patterns below. What was done counts, not what is planned, asked, denied or supposed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import regex

from lamina.core.memories import Category, Message, Note, Role
from lamina.extraction.speech import Span, Statement
from lamina.text.opaque import without_opaque

IMPORTANCE = 0.4
MAX_REQUEST_CHARS = 300
MAX_TOOLS = 8
_GAP = r"[^.!?;。！？；\n]{0,60}?"
_TALK = (
    r"(?:meetings?|calls?|video[ -]?calls?|phone calls?|conference|conversation|interview|appointment|one[- ]on[- ]one|"
    r"1:1|sync|stand-?up|kick-?off|workshop|consultation)"
)
_TASK = (
    r"(?:tickets?|cases?|tasks?|issues?|jobs?|projects?|bugs?|customers?|clients?|calls?|accounts?|files?|reviews?|"
    r"requests?|incidents?|migrations?|reports?|orders?|shifts?|on-?call|releases?|rollouts?|work)"
)


@dataclass(frozen=True, slots=True)
class _Wording:
    parts: tuple[str, ...]
    pattern: "regex.Pattern[str]"


def _wording(parts: str, pattern: str) -> _Wording:
    """Return a pattern with parts of words, in small letters, of which a sentence has one: most have none."""
    return _Wording(tuple(parts.split("|")), regex.compile(pattern, regex.IGNORECASE))


_WORDINGS = (
    # English, meetings
    _wording(
        "met |spoke |had |was in |were in |took place|went |is over",
        r"\b(?:met(?: up)? with\b|spoke (?:with\b|to (?!me\b))"
        rf"|had (?:an?|our|my|the|another) (?:\w+[ -]){{0,3}}?{_TALK} (?:with|about|on)\b"
        rf"|(?:was|were) in (?:an?|the) (?:\w+ ){{0,2}}?{_TALK} with\b"
        rf"|(?:meeting|call|interview|workshop|kick-?off) (?:with|about) {_GAP} "
        r"(?:took place|went (?:well|badly|fine)|is over))",
    ),
    # English, hand-overs
    _wording(
        "handed |passed |turned |signed |assigned |delegated |escalated |entrusted |transferred |forwarded |gave "
        "|over ",
        rf"\b(?:(?:handed|passed|turned|signed) {_GAP}\b(?:over|off|on) to\b|handed off\b"
        rf"|(?:re)?(?:assigned|delegated|escalated|entrusted)\b {_GAP}\bto (?!be\b|do\b|me being\b)\w"
        r"|(?:transferred|forwarded|gave) (?:the|this|that|my|our|her|his|their|all|all the) (?:[\w-]+ ){0,3}?"
        rf"{_TASK}\b {_GAP}\bto\b"
        r"|(?:took|taken|takes|taking) over (?:the|this|that|my|our|her|his|their|all|all the|from|for|as)\b)",
    ),
    # German
    _wording(
        "getroffen|besprochen|zusammengesetzt|gesprochen|telefoniert",
        rf"\b(?:ha(?:be|ben|t|tte|tten) (?:mich|uns|sich|mit) {_GAP}\b"
        r"(?:getroffen|besprochen|zusammengesetzt|gesprochen|telefoniert)\b)",
    ),
    _wording("traf", rf"\b(?:traf|trafen) (?:mich|uns|sich) {_GAP}\bmit\b"),
    _wording(
        "besprechung|meeting|termin|telefonat|gespräch|sitzung|videocall",
        rf"\b(?:hatten?|gab es|haben?) {_GAP}"
        r"\b(?:Besprechung|Meeting|Termin|Telefonat|Gespräch|Sitzung|Videocall) (?:mit|über|zu[mr]?)\b",
    ),
    _wording(
        "übergeben|übertragen|weitergegeben|weitergeleitet|delegiert|abgegeben|eskaliert",
        rf"\ban {_GAP}\b(?:übergeben|übertragen|weitergegeben|weitergeleitet|delegiert|abgegeben|eskaliert)\b",
    ),
    _wording(
        "übernommen|übernimmt|übergab|übertrug|delegierte|zugewiesen",
        rf"\b(?:ha(?:be|ben|t) {_GAP}\bübernommen|übernimmt (?:ab|jetzt|nun|die|das|den)|übergab|übertrug|delegierte"
        r"|zugewiesen)\b",
    ),
    # French
    _wording(
        "rencontré|discuté avec|parlé |échangé avec|réuni|entretenu|réunion|rendez-vous|appel|entretien|visio",
        r"\b(?:(?:j'ai|avons|on a|a|ont) (?:rencontré|discuté avec|parlé (?:avec|à)|échangé avec)\b"
        r"|(?:me|nous|se) (?:suis|sommes|est|sont) (?:réunie?s?|entretenue?s?) avec\b"
        rf"|(?:j'ai|avons|on a|a|ont) eu (?:une?|notre|la|le) {_GAP}(?:réunion|rendez-vous|appel|entretien|visio) "
        r"(?:\w+ ){0,3}?avec\b)",
    ),
    _wording(
        "confié|transmis|délégué|transféré|assigné|remis|repris|pris ",
        r"\b(?:(?:j'ai|avons|on a|a|ont|été) (?:confiée?s?|transmise?s?|déléguée?s?|transférée?s?|(?:ré)?assignée?s?|"
        rf"remise?s?) {_GAP}(?:à|au|aux)\b|(?:a|ont|j'ai|avons) (?:repris|pris en charge|pris le relais)\b)",
    ),
    # Spanish
    _wording(
        "reun|habl|llamada|cita|entrevista",
        r"\b(?:(?:me|nos|se) (?:reuní|reunimos|reunió|reunieron) con\b|(?:hablé|hablamos|habló) con\b"
        rf"|(?:tuve|tuvimos|tuvo) una? {_GAP}(?:reunión|llamada|cita|entrevista|videollamada) (?:\w+ ){{0,3}}?con\b)",
    ),
    _wording(
        "pasé|pasamos|asign|deleg|entreg|transfer|encargué|traspasó|cargo de",
        r"\b(?:(?:le|les|se l[oae]s?) (?:pasé|asigné|delegué|entregué|transferí|encargué)\b"
        r"|(?:asigné|asignamos|delegué|delegamos|transferí|transferimos|entregué|entregamos|pasé|pasamos|asignó|delegó|"
        rf"traspasó) (?:el|la|los|las|este|esta|mi|nuestro) {_GAP}\b(?:a|al)\b"
        r"|(?:se hizo|me hice|nos hicimos) cargo de\b)",
    ),
    # Italian
    _wording(
        "incontr|parlato con|riuni|chiamata|colloquio|vist",
        r"\b(?:(?:ho|abbiamo|ha|hanno) (?:incontrato|parlato con)\b"
        rf"|(?:ho|abbiamo|ha|hanno) (?:avuto|fatto) un['a]? ?{_GAP}"
        r"(?:riunione|incontro|chiamata|colloquio|videochiamata) (?:\w+ ){0,3}?con\b"
        r"|(?:mi|ci|si) (?:sono|siamo|è) (?:incontrat[oaie]|riunit[oaie]|vist[oaie]) con\b)",
    ),
    _wording(
        "assegnato|affidato|passato|delegato|trasferito|consegnato|preso in ",
        r"\b(?:ho|abbiamo|ha|hanno) (?:(?:assegnato|affidato|passato|delegato|trasferito|consegnato) "
        rf"{_GAP}\b(?:a|al|alla|ai|ad)\b|preso in (?:carico|mano)\b)",
    ),
    # Portuguese
    _wording(
        "reuni|encontr|fal|convers|chamada|ligação|entrevista",
        r"\b(?:(?:me|nos|se) (?:reuni|reunimos|reuniu|encontrei|encontramos) com\b"
        r"|(?:falei|falamos|falou|conversei|conversamos) com\b"
        rf"|(?:tive|tivemos|teve) uma? {_GAP}(?:reunião|chamada|ligação|entrevista|videochamada|conversa) "
        r"(?:\w+ ){0,3}?com\b)",
    ),
    _wording(
        "passei|passamos|atribuí|delegu|delegamos|transfer|entreg|assumi",
        r"\b(?:(?:passei|passamos|atribuí|atribuímos|deleguei|delegamos|transferi|transferimos|entreguei|entregamos) "
        rf"(?:o|a|os|as|este|esta|essa|esse|meu|minha) {_GAP}\b(?:para|ao|à)\b"
        r"|(?:assumi|assumiu|assumimos) (?:o|a) (?:projeto|tarefa|caso|chamado|trabalho|conta)\b)",
    ),
    # Dutch
    _wording(
        "gesproken|overlegd|vergader|gebeld|afgesproken|overleg|gesprek|afspraak|telefoontje",
        rf"\b(?:(?:gesproken|overlegd|vergaderd|gebeld|afgesproken) met\b"
        rf"|met {_GAP}\b(?:gesproken|overlegd|vergaderd|gebeld)\b"
        r"|een (?:\w+ ){0,2}?(?:vergadering|overleg|gesprek|afspraak|telefoontje) gehad met\b"
        r"|(?:had|hadden) een (?:\w+ ){0,2}?(?:vergadering|overleg|gesprek|afspraak|telefoontje) met\b)",
    ),
    _wording(
        "overgedragen|toegewezen|doorgegeven|overgelaten|gedelegeerd|overgenomen",
        rf"\b(?:aan {_GAP}\b(?:overgedragen|toegewezen|doorgegeven|overgelaten|gedelegeerd)\b"
        rf"|(?:overgedragen|toegewezen|doorgegeven|gedelegeerd) aan\b|(?:heeft|heb|hebben) {_GAP}\bovergenomen\b)",
    ),
    # Polish
    _wording(
        "spotka|rozmawia|spotkanie|rozmowę|przekaza|zleci|przej",
        r"\b(?:spotka(?:łem|łam|liśmy|łyśmy|ł|ła|li) się z\b|rozmawia(?:łem|łam|liśmy|łyśmy|ł|ła|li) z\b"
        r"|(?:miałem|miałam|mieliśmy) (?:\w+ ){0,2}?(?:spotkanie|rozmowę) z\b"
        r"|przekaza(?:łem|łam|liśmy|łyśmy|ł|ła|li) |zleci(?:łem|łam|liśmy|ł|ła) |przej(?:ąłem|ęłam|ęliśmy|ął|ęła) )",
    ),
    # Russian and Ukrainian
    _wording(
        "встре|созвон|говори|совещание|зустрі|нарада",
        r"\b(?:(?:встретил(?:ся|ась|ись)|созвонил(?:ся|ась|ись)|поговорил[аи]?|зустріл(?:ася|ися)|зустрівся|"
        r"поговори[влаи]+) (?:с|со|з|із)\b"
        rf"|(?:была?|был[аои]?|провел[аи]?|була|був) {_GAP}(?:встреча|встречу|созвон|совещание|зустріч|нарада) "
        r"(?:с|со|з|із)\b)",
    ),
    _wording(
        "переда|поручил|делегировал|назначил|взял|доручи",
        rf"\b(?:(?:передал[аи]?|поручил[аи]?|делегировал[аи]?|(?:пере)?назначил[аи]?) {_GAP}"
        r"(?:задач|тикет|проект|дел|заявк|клиент|работ)|взял[аи]? на себя|(?:передав|передала|доручив|доручила) )",
    ),
    # Turkish
    _wording(
        "görüş|buluş|toplantı|devr|atadım|görevlendirdim",
        rf"\bile {_GAP}(?:görüştüm|görüştük|görüştü|buluştum|buluştuk|toplantı yaptı[mk]?)\b"
        r"|\b(?:devrettim|devrettik|devretti|devraldım|devraldı|atadım|görevlendirdim)\b",
    ),
    # Chinese
    _wording(
        "面|会|會|电话|電話|谈|談",
        r"[和跟与與同][^。！？；，\n]{1,20}?(?:见了?面了?|見了?面了?|开了(?:一?[个次])?会|開了(?:一?[個次])?會|会面了|會面了|"
        r"通了一?个?电话|通了一?個?電話|谈了|談了)",
    ),
    _wording(
        "交|分配|委托|委託|接手",
        r"[把将將][^。！？；\n]{1,30}?(?:交接?[给給]|[移转轉]交|(?:分配|委托|委託)[给給])|接手了",
    ),
    # Japanese
    _wording(
        "会|打ち合わせ|面談|話",
        r"と[^。！？\n]{0,20}?(?:会った|会いました|(?:打ち合わせ|会議|面談)を?し(?:た|ました)|話し合(?:った|いました)"
        r"|電話で話し(?:た|ました))",
    ),
    _wording(
        "引き|割り当て|任せ",
        r"引き継(?:いだ|ぎました|いで(?:もらった|もらいました))|割り当て(?:た|ました)|任せ(?:た|ました)|引き渡し(?:た|ました)",
    ),
    # Korean
    _wording("만났|했", r"(?:와|과|하고|랑)[^.!?\n]{0,20}?(?:만났|(?:회의|미팅|통화|면담)[를을]? ?했)"),
    _wording("넘겼|인계|배정|맡겼|위임", r"(?:에게|한테)[^.!?\n]{0,30}?(?:넘겼|인계했|배정했|맡겼|위임했)"),
    # Arabic, Hindi
    _wording("اجتمع|التقي|تحدث", r"(?:اجتمع(?:ت|نا)?|التقي(?:ت|نا)|تحدث(?:ت|نا)) (?:مع|ب)"),
    _wording("سلم|أسند|حول|كلف", r"(?:سلم|أسند|حول|كلف)(?:ت|نا) [^.!؟\n]{0,40}?(?:إلى|ل|ب)"),
    _wording(
        "मुला|मिला|मिली|बैठक|बात", r"(?:से|के साथ) [^।.!?\n]{0,30}?(?:मुलाकात की|मुलाक़ात की|मिला था|मिली थी|बैठक की|बात की)"
    ),
    _wording("सौंप", r"को [^।.!?\n]{0,30}?(?:सौंप दिया|सौंप दी|सौंपा|सौंपी)"),
)
_WORDINGS_OF_ASCII = tuple(wording for wording in _WORDINGS if any(part.isascii() for part in wording.parts))
_SUPPOSED = regex.compile(
    r"(?:\b(?:if|unless|whether|wenn|falls|ob|si|se|als|jeśli|gdyby|если|якщо|eğer|wish|hope|want(?:ed)? to|إذا)\b"
    r"|अगर|如果|要是|もし)",
    regex.IGNORECASE,
)
_DENIED = regex.compile(
    r"(?:\b(?:not|never|no longer|nicht|nie|kein\w*|ne|n'\w+|jamais|pas|nunca|no|non|mai|não|niet|nooit|geen|nie|не|"
    r"никогда|ні|değil|لم|لا)\b|(?<=\w)n't\b|नहीं|没|沒|不|ませんでした|なかった|않았|못)",
    regex.IGNORECASE,
)


def is_interaction(sentence: Statement) -> bool:
    """Report whether a sentence states a meeting or a task that was handed over."""
    if sentence.text.rstrip().endswith(("?", "？", "؟")):
        return False
    text = sentence.masked.casefold()
    wordings = _WORDINGS_OF_ASCII if text.isascii() else _WORDINGS
    patterns = [wording.pattern for wording in wordings if any(part in text for part in wording.parts)]
    return any(_is_done(sentence.masked, span, pattern) for pattern in patterns for span in sentence.told)


def _is_done(masked: str, span: Span, pattern: "regex.Pattern[str]") -> bool:
    start, end = span
    done = pattern.search(masked, start, end)
    if done is None or _SUPPOSED.search(masked, start, done.start()):
        return False
    # A denial stands before its verb, but behind it in Japanese and Korean, and in "traf nicht".
    return not _DENIED.search(masked, start, min(end, done.end() + 8))


def tool_notes(messages: Sequence[tuple[Message, UUID]], confidence: float) -> Iterator[Note]:
    """Yield a note for each request that was answered with tools: the request, and the names of the tools.

    Args:
        messages: Of one turn, in their order, with their ids.
        confidence: Of the notes.
    """
    asked: tuple[Message, UUID] | None = None
    called: list[str] = []
    for message, id_ in messages:
        if message.role is Role.USER:
            yield from _tool_note(asked, called, confidence)
            asked, called = (message, id_), []
        elif message.role is Role.TOOL and (asked or message.name):
            asked = asked or (message, id_)
            called.append(message.name or "tool")
    yield from _tool_note(asked, called, confidence)


def _tool_note(asked: tuple[Message, UUID] | None, called: Sequence[str], confidence: float) -> Iterator[Note]:
    if asked is None or not called:
        return
    message, id_ = asked
    request = "" if message.role is Role.TOOL else " ".join(without_opaque(message.content).split())
    if len(request) > MAX_REQUEST_CHARS:
        request = request[:MAX_REQUEST_CHARS].rsplit(" ", 1)[0] + " …"
    names = list(dict.fromkeys(called))
    more = f" and {len(names) - MAX_TOOLS} more" if len(names) > MAX_TOOLS else ""
    yield Note(
        content=f"{request} (tools: {', '.join(names[:MAX_TOOLS])}{more})".strip(),
        category=Category.INTERACTION,
        importance=IMPORTANCE,
        confidence=confidence,
        event_at=message.occurred_at,
        source=f"message:{id_}",
        metadata={"speaker": message.name} if message.name and message.role is not Role.TOOL else {},
        speakers=message.speakers(),
    )

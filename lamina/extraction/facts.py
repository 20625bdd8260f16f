"""Read the name, place, time zone, employer and preferences that users state, and their changes.

English only. A clause counts if it begins with its subject: "I live in Graz" does, "where I live in Graz" does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import regex

from lamina.core.profiles import DOMAINS
from lamina.extraction.clauses import clause_starts
from lamina.extraction.speech import Statement
from lamina.text.english import CALENDAR_WORDS, FUNCTION_WORDS, SENTENCE_STARTERS, listed
from lamina.text.places import known_places

MAX_VALUE_CHARS = 80

_SUBJECT = regex.compile(
    r"(?:i|im|ive|we|my|call|you|u|home|hi|hello|hey|everyone|everybody|people|friends|most|all)\b", regex.IGNORECASE
)
# A subject goes on over "and": "I left Initech and joined Hooli".
_VERB = regex.compile(r"(?:moved|joined|left|quit|work|live|prefer|started|resigned|relocated)\b", regex.IGNORECASE)

_GOES_ON = regex.compile(r"i (?:live|work|grew|was)\b", regex.IGNORECASE)

_ADVERBS = (
    "(?: (?:just|recently|finally|now|also|actually|currently|still|mostly|already|mainly|always|usually|generally|"
    "really|"
    "officially|only|even|definitely|strongly|much|happily))*+"
)
_CAPITALISED = (
    r"(?:(?:St|Dr|Mt|Ft|\p{Lu})\. \p{Lu}[\p{L}\p{M}'’-]*+|(?:\d*+|[a-z])\p{Lu}[\p{L}\p{M}\p{N}_'’&-]*+"
    r"(?:(?:\.\p{L}[\p{L}\p{M}\p{N}]*+)++\.?+)?+)"
)
_LINK = (
    "(?:(?:of|de|do|da|di|du|del|della|dos|das|la|las|los|le|les|am|an der|upon|van|von|den|der|bin|ibn|al|el|ten|ter|"
    "zu|y|"
    "af|av|sur|&) ){0,2}+"
)
_NAMED = rf"(?P<value>{_CAPITALISED}(?: {_LINK}(?!I\b){_CAPITALISED}){{0,6}}+)"
_PLACE = rf"(?P<value>(?:the )?{_CAPITALISED}(?: {_LINK}(?!I\b){_CAPITALISED}){{0,6}}+)"
_LOWER_PLACE = r"(?P<lower>(?:the )?[\p{Ll}\p{M}'’-]+(?: [\p{Ll}\p{M}'’-]+)?+)"
_BARE = r"(?P<bare>\p{Ll}[\p{L}\p{M}\p{N}&'’-]+)"
_LOWER = r"(?P<lower>[\p{Ll}\p{M}'’-]+(?: [\p{Ll}\p{M}'’-]+)?+)"
_PHRASE = r"(?P<phrase>[^.!?,;:()–—]+)"
_AGO = r"(?= (?:for|since|ever since|all my life))"
_WORK = (
    r"(?: (?:full[- ]time|part[- ]time|remotely|nights|days|weekends|mornings|evenings|(?:night |day |early |late "
    r")?shifts?|"
    r"as an? [\w -]{1,40}?|in [\w ]{1,30}?|on the [\w ]{1,20}?|\d{1,3} (?:hours|hrs|days|shifts) (?:a|per|each) "
    r"(?:week|month)))?"
)
_ROLE = (
    r"(?:an?|the) (?P<role>(?!(?:bit|little|lot|big|huge|real) )[\w/-]{1,30}(?: [\w/-]{1,30}){0,4}?)"
    r"(?: working| employed)?"
)
# Of those whom a place pays: by the shape of the word, and the most common without it.
_JOB = regex.compile(
    r"\b(?:\w{2,}(?:ers?|or|ist|ian|ant|eer|man|woman|wright|smith)|nurse|chef|cook|clerk|intern|lead|head|postdoc|"
    r"barista|pilot|judge|coach|"
    r"guard|vet|architect|attorney|secretary|trainee|apprentice|tech|fellow|partner|associate|agent|exec|executive|"
    r"analyst|"
    r"dev|devops|sre|dba|qa|pm|ceo|cto|cfo|coo|ciso|vp|hr|rep|representative|midwife|dentist|surgeon|temp|host|hostess|"
    r"president|dean|chair|scholar|scientist|phd)\b",
    regex.IGNORECASE,
)
_NO_JOB = regex.compile(
    r"\b(?:who|that|which|customer|member|speaker|regular|guest|visitor|patient|student|client|user|subscriber|"
    r"beginner|winner|"
    r"loser|foreigner|stranger|newcomer|believer|lover|finisher|exhibitor|competitor|spectator|player|volunteer|"
    r"attendee|"
    r"shareholder|investor|supporter|follower|applicant|participant|contestant|runner|swimmer|smoker|vegetarian|"
    r"former|\w*er "
    r"(?:fan|person))\b",
    regex.IGNORECASE,
)
_DEPARTMENT = (
    r"(?:the )?(?:marketing|sales|hr|it|ops|operations|engineering|finance|support|design|product|legal|logistics|"
    r"security|"
    r"research|data|infrastructure|devops|qa|accounting|purchasing|communications|customer \w{1,20}|\w{1,20} team)"
)

_NO_NAMES = CALENDAR_WORDS | listed(
    "maybe tomorrow today tonight later now asap back when if at on in crazy sir old the first last christmas easter "
    "whatever anytime soon collect direct here home up out before after mr mrs ms dr"
)
_NO_LOWER_NAMES = (
    FUNCTION_WORDS
    | _NO_NAMES
    | listed(
        "hard difficult long short common rare unusual wrong missing mud important boring weird unique legion changing "
        "spelt written different irrelevant secret private public known unknown john's like pretty very"
    )
)
# Where work and files move to, rather than people.
_NO_PLACES = listed(
    "linux windows mac macos android ios python rust go golang java javascript typescript kotlin swift ruby php perl "
    "c c++ "
    "vim neovim emacs vscode firefox chrome safari edge gmail outlook slack teams discord zoom notion obsidian jira "
    "linear "
    "asana trello github gitlab bitbucket aws azure gcp kubernetes docker kafka redis postgres postgresql mysql "
    "mariadb "
    "sqlite mongodb spark airflow react vue svelte angular django rails spring excel sheets sales marketing product "
    "engineering finance legal hr it support management design research operations consulting bluesky mastodon twitter "
    "threads spotify netflix arch ubuntu debian fedora terraform ansible graphql rest grpc plan phase step part level "
    "section chapter page version team room desk table seat gate platform god jesus christ islam dvorak qwerty"
)
_CLUBS = listed(
    "club party union gym church league team choir band orchestra group meetup channel server community army navy "
    "forces "
    "mensa facebook instagram tiktok linkedin reddit twitter discord slack zoom netflix tinder duolingo github strava "
    "mastodon bluesky twitch patreon"
)
# Where one works without an employer: places, times and manners that take no article.
_NO_EMPLOYERS = listed(
    "home night nights sea school uni university college hospital work weekends noon dawn dusk sunrise sunset midnight "
    "speed scale times least most random present full half altitude height pace peak capacity various different many "
    "all "
    "one two three my our the a an that this it once both several some any what sunday monday tuesday wednesday "
    "thursday "
    "friday saturday ease will best worst last first low high court church base camp ground level"
)
_NATION = regex.compile(
    r"\b(?:\p{L}{2,18}(?:ish|ese|ian|ean|ican)|german|dutch|french|greek|swiss|czech|thai|turk|dane|swede|finn|pole|"
    r"welsh|"
    r"israeli|pakistani|iraqi|kuwaiti|latino|latina|latinx|arab|jewish|muslim|catholic|hindu|buddhist|sikh|christian|"
    r"ok|okay)",
    regex.IGNORECASE,
)
_NOT_YET = regex.compile(
    r"^[^,;]{0,40}?\b(?:next (?:\w+)|soon|tomorrow|(?:some|one) ?day|starting (?:in|on|from)|in my (?:dreams?|head|"
    r"mind|heart))\b",
    regex.IGNORECASE,
)
# Behind the name of an employer that was left; "I left Slack open", "I left Google at six" leave something else.
_LEFT_WORK = regex.compile(
    r"(?:[.!,;)]|$| (?:in (?:\d{4}|\p{Lu}\p{Ll}+|the (?:spring|summer|autumn|fall|winter))|last|this (?:week|month|"
    r"year|spring|"
    r"summer|autumn|fall|winter)|recently|yesterday|today|now|ages|back|(?:\d+|an?|two|three|four|five|six|seven|"
    r"eight|nine|ten|some|"
    r"many|several) (?:days?|weeks?|months?|years?|while|couple)|after (?:\d+|an?|two|three|four|five|six|seven|eight|"
    r"nine|ten|many|"
    r"several|almost|nearly) \w*(?:years?|months?|decades?|weeks?)?|to (?:join|work|start|found|become|study|teach|"
    r"do)|for (?:good|"
    r"\p{Lu})|because (?!it\b|of (?:the|a)\b)|and|but|as)\b)"
)
_JOINS_WORK = regex.compile(
    r"(?:[.!,;)]|$| (?:as|this|last|recently|yesterday|today|now|instead|but|two|three|a|in (?:\d{4}|\p{Lu}\p{Ll}+)|"
    r"and (?!\p{Lu}))\b)"
)
_FOR_A_VISIT = regex.compile(
    r" for (?:[^\s.!?]{1,20} ){1,3}?(?:minutes?|mins?|hours?|hrs?|days?|nights?|weeks?)\b| (?:[^\s.!?;]{1,20} "
    r"){0,2}all (?:day|morning|afternoon|evening|night|week)\b",
    regex.IGNORECASE,
)
_ENDS_BARE = regex.compile(
    r"(?:[.!,;)]|$| (?:as|in|and|but|since|for|now|on|so|because|these days|atm|full[- ]time|part[- ]time)\b)"
)
_ENDS_INTRODUCTION = regex.compile(
    r"\s*(?:$|[,.!;)(–—-]|(?:from|at|with|and i|the new|your new|one of|by the way|btw)\b)", regex.IGNORECASE
)
_IS_CHANGE = regex.compile(
    r"no longer|any ?more|any longer|stopped|\b(?:left|quit|lost|fired|laid|resigned|retired|moved|unemployed|"
    r"between)\b",
    regex.IGNORECASE,
)
_ENDS_NAME = regex.compile(r"\s*(?:$|[,.!;)(]|(?:please|instead|from now on|for short|and|if|btw|thanks|now)\b)")
_PHRASE_END = regex.compile(
    r"\s(?:(?:and|or) (?=(?:(?i:(?:(?:the|a|an|this|these|those|some|most|all|every|no|each) )?(?:[\w'-]+ "
    r"){1,3}(?:(?:is|are|was|were|has|had|does|did|"
    r"will|would|can|could|should|must|might)(?:n't)?|won't|can't|don't|isn't|wasn't|never|always|usually|often)|"
    r"(?:the|our|my|a|an|each|every) \w+ (?:\w+ed|ate|went|got|made|took|left|gave|came|\w+s (?!(?:in|of|on|at|with|"
    r"from|for|and|or|"
    r"over|to)\b)\w+)|(?:nobody|no one|everyone|everybody|someone|anyone|people)|i|i'm|i've|i'd|you|he|she|we|they|it|"
    r"it's|that|that's|this|my|his|her|our|their|so|then|also|please|do|don't|can|could|am|was|have|hate|love|like|"
    r"need|want|work|live|use|never|always|would|will)|"
    r"\p{Lu}\w+ (?:is|was|has|\p{Ll}+s))\b)|(?i:but|even(?= (?:though|if|when)\b)|because|cause|cuz|since|as (?=(?:i|"
    r"it|my|they|we|he|she|you)\b)|when|"
    r"whenever|while|if|unless|so|although|though|whereas|which|who|until|except)\b|[-–—]+\s)"
)
_PHRASE_TAIL = regex.compile(
    r"\s(?:now|nowadays|these days|lately|any ?more|any longer|please|thanks|thank you|instead|too|as well|actually|"
    r"generally|"
    r"usually|lol|btw|though|honestly|tbh|overall|for sure|of course|\p{So}+|:\)|xd|haha|tho)$",
    regex.IGNORECASE,
)
_POINTS_ELSEWHERE = regex.compile(
    r"(?:it|that|this|these|those|him|her|them|you|your|yours|mine|his|hers|neither|both|either|one|what|how|when|"
    r"where|if|not "
    r"to (?:say|answer|tell|share|talk)|to not (?:say|answer)|(?:the|this|that) (?:\w+ )?(?:one|ones|option|version|"
    r"way|former|"
    r"latter|first|second|third|other|last|same|answer|idea|approach|plan)|option|a different|another|something|"
    r"anything|"
    r"somewhere|someone|nothing|more|less)(?!\w)",
    regex.IGNORECASE,
)
_ZONE = (
    r"(?P<zone>\p{L}[\p{L}_]+/[\p{L}_/+-]+|(?i:utc|gmt)(?: ?[+-]\d{1,2}(?::?\d\d)?)?|(?i:cet|cest|est|edt|cst|cdt|mst|"
    r"mdt|pst|pdt|"
    r"wet|west|eet|eest|bst|ist|jst|kst|sgt|hkt|aest|aedt|acst|awst|nzst|nzdt|msk|sast|wat|eat|brt|art|akst|hst)\b"
    r"|(?:Eastern|Central|Mountain|Pacific)(?: (?:Standard|Daylight|European))?(?: Time)?)"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A change of the profile that one clause states.

    Args:
        patch: As a profile's patch.
        withdrawn: Values that hold no longer, by field.
        is_noted: Whether it is worth a note, beside the profile's value: not how it was ("I used to live in Graz"), nor
            how it is not ("I don't live in Graz").
        outcome: In plain words, how it is after a change: a question asks for "work", the change says "joined".
    """

    patch: Mapping[str, Any] = field(default_factory=dict)
    withdrawn: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_noted: bool = True
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The pattern of a clause, from its subject on.

    Args:
        key: The field of the profile.
        ends: Whether the value holds no longer.
        outcome: Of the fact, with a place for the value.
    """

    key: str
    pattern: "regex.Pattern[str]"
    ends: bool = False
    outcome: str = ""


def _rule(key: str, words: str, value: str, *, ends: bool = False, outcome: str = "") -> _Rule:
    return _Rule(key, regex.compile(rf"(?i:{words}){value}"), ends, outcome)


_STACK = "stack"
_HAVE = f"i(?:'ve| have|ve)?{_ADVERBS}"
_AM = f"i(?:'m| am|m)?{_ADVERBS}"
_NOT = "(?:no longer|don't|do not|dont|am not|am no longer|used to|stopped)"
_AM_NOT = f"i(?: {_NOT}|'m no longer|'m not|'ve stopped| have stopped)(?: really)?"
_WITH = "(?: (?:at|for|with|from|by))"
_RULES = (
    _rule("name", "my (?:full |first |real |given )?name(?: is|'s)(?: actually| really)? ", _NAMED),
    _rule("name", "my name is ", _LOWER),
    _rule("name", "(?:(?:you|u) (?:can|may) (?:just )?)?call me ", _NAMED),
    _rule(
        "name",
        r"(?:everyone|everybody|people|(?:most |all )?(?:of )?(?:my )?(?:\w+ )?(?:friends|colleagues|family|folks|"
        r"people|parents|"
        r"students|team-?mates|co-?workers)|most)(?: here| at work| just| usually)? calls? me ",
        _NAMED,
    ),
    _rule("name", f"i{_ADVERBS} go by (?:the name )?", _NAMED),
    _rule("name", f"{_AM} called ", _NAMED),
    _rule(
        "name",
        r"(?:hi|hello|hey)(?: all| there| everyone| everybody| team| folks| guys| again)?[ ,.!]+(?:i'm|i am|im) ",
        _NAMED,
    ),
    _rule("location", f"(?:{_AM}|we) (?:live|living|reside|based|located)(?: and work)?{_ADVERBS} in ", _PLACE),
    _rule("location", f"(?:{_AM}|we) (?:live|living|based)(?: and work)?{_ADVERBS} in ", _LOWER_PLACE),
    _rule("location", "(?:i|we)(?:'ve| have) (?:lived|been living|been based) in ", _PLACE + _AGO),
    _rule("location", f"{_HAVE} settled(?: down)? in ", _PLACE, outcome="I live in {} now."),
    _rule("location", "(?:my )?home(?: is|'s)(?: now| currently)?(?: in)? ", _PLACE),
    _rule(
        "location",
        f"{_HAVE} (?:moved|relocated)(?: back| over)?(?: from [^,.;]{{1,40}}?)? to ",
        _PLACE,
        outcome="I live in {} now.",
    ),
    _rule("location", f"{_AM_NOT} (?:live|living|based) in ", _PLACE, ends=True),
    _rule("location", f"{_HAVE} moved (?:away from|out of|from) ", _PLACE, ends=True),
    _rule("employer", f"{_AM} (?:work|working|employed){_ADVERBS}{_WORK} (?:at|for|by) (?:the )?", _NAMED),
    _rule("employer", f"{_AM} (?:work|working|employed){_ADVERBS}{_WORK} (?:at|by) ", _BARE),
    _rule("employer", "i(?:'ve| have) (?:worked|been working) (?:at|for) (?:the )?", _NAMED + _AGO),
    _rule("employer", "i(?:'ve| have) been at (?:the )?", _NAMED + _AGO),
    _rule("employer", "my (?:new |current )?employer(?: is|'s)(?: now| currently| called)? (?:the )?", _NAMED),
    _rule("employer", "my (?:new |current )?company(?: is|'s)(?: now| called| named)? ", _NAMED),
    _rule("employer", f"{_AM} {_ROLE} (?:at|for|with|by) (?:the )?", _NAMED),
    _rule(
        "employer", f"i{_ADVERBS} (?:run|lead|manage|head|do|handle|teach) {_DEPARTMENT} (?:at|for) (?:the )?", _NAMED
    ),
    _rule(
        "employer",
        f"{_HAVE} (?:started(?: working| work| (?:my|a) (?:new )?job)?{_WITH}|got (?:a|the|my) (?:new )?job{_WITH}|"
        f"(?:was|got|been) hired{_WITH}|joined) (?:the )?",
        _NAMED,
        outcome="I work at {} now.",
    ),
    _rule(
        "employer", f"{_HAVE} (?:left|quit) (?:[^,.;]{{1,40}}?)(?: to join| for) ", _NAMED, outcome="I work at {} now."
    ),
    _rule(
        "employer",
        f"{_HAVE} (?:(?:left|quit)|(?:left|quit|lost) (?:my|the) (?:job|position|role){_WITH}|resigned from|retired "
        f"from|(?:got|was|been) "
        f"(?:fired|laid off){_WITH}) (?:the )?",
        _NAMED,
        ends=True,
    ),
    _rule("employer", f"{_AM_NOT} work(?:ing)? (?:at|for) (?:the )?", _NAMED, ends=True),
    _rule("employer", "i(?: am|'m) no longer (?:at|with) (?:the )?", _NAMED, ends=True),
    _rule(
        "employer",
        f"(?:{_HAVE} (?:quit|left|lost) my (?:old )?job|{_HAVE} (?:got|was|been) (?:fired|laid off)|{_AM} "
        r"(?:unemployed|retired|between jobs))(?=\s*(?:$|[.!,;)]| (?:last|this|in|and|two|three|a|yesterday|today|"
        r"now)\b))",
        "",
        ends=True,
    ),
    _rule("timezone", r"my time ?zone (?:is|=) ", _ZONE),
    _rule("timezone", f"{_AM} (?:in|on) (?:the )?", _ZONE + r"(?= time ?zone\b)"),
    _rule(_STACK, "my (?:current |usual |tech |technology |software )*stack (?:is|includes|consists of) ", _PHRASE),
    _rule("preferences", f"i(?: {_NOT})(?: really)? prefer(?:ring)? ", _PHRASE, ends=True),
    _rule("preferences", "i (?:no longer like|don't like|do not like|dont like) ", _PHRASE, ends=True),
    _rule("preferences", f"i{_ADVERBS} prefer ", _PHRASE),
    _rule(
        "preferences",
        "my preference(?: is|'s)(?: still| now| for| clearly)? (?!(?:clear|not|still|the same|obvious|unchanged)\\b)",
        _PHRASE,
    ),
)
# "For now", "in general" and "in winter" name no domain; what one does, and these, do.
_DOMAIN_WORD = (
    r"(?:\p{L}{2,20}ing|work|music|travel|food|code|sports?|fashion|photography|design|finance|health|fitness|games|"
    r"coffee|art|books|school|research|sales|support|software development|data science)"
)
_DOMAIN = regex.compile(
    r"\W*(?:(?:when it comes to|as for|regarding|concerning|in terms of|with regard to) (?:my |the )?"
    r"(?P<named>\p{L}{3,20}(?: \p{L}{3,20})?)|(?:for|in|at|when) (?:my |the )?(?P<short>" + _DOMAIN_WORD + r")), ",
    regex.IGNORECASE,
)
_NO_LONGER = regex.compile(r"no longer like|any ?more\b|any longer\b", regex.IGNORECASE)
_NOW = regex.compile(r"\b(?:now|nowadays|these days|lately)\b", regex.IGNORECASE)
_INSTEAD = regex.compile(
    r"(?: any ?more| any longer)?+(?:,? but(?: now| rather| only| just)?|, (?:and )?(?:now )?(?:only|just|now|rather)) "
    r"(?!i\b)(?P<phrase>[^.!?,;:()–—]+)",
    regex.IGNORECASE,
)
_OVER = regex.compile(r"\w (?:over|rather than|instead of) (?P<other>[^,;]{1,40})$", regex.IGNORECASE)
_INCOMPLETE = regex.compile(
    r"(?:\b|^)(?:to|not|that|when|what|and|or|the|an?|of|in|as|my|your|for|with)$", regex.IGNORECASE
)


def facts_of(statement: Statement) -> Iterator[Fact]:
    """Yield the facts of a sentence, in order."""
    for start, end in statement.own:
        goes_on = False
        for clause in clause_starts(statement.masked, start, end):
            opening = statement.masked[clause : clause + len("relocated")]
            said = "I " if goes_on and _VERB.match(opening) else ""
            found = _fact(said + statement.masked[clause:end], said + statement.text[clause:end])
            goes_on = found is not None or _GOES_ON.match(statement.masked, clause, end) is not None
            if found is not None:
                yield _in_domain(found, statement.masked[start:clause])


def _in_domain(fact: Fact, before: str) -> Fact:
    """Return a preference as one of the domain that the sentence begins with: "When it comes to cooking, I prefer …"."""
    match = _DOMAIN.fullmatch(before)
    if match is None or "preferences" not in fact.patch:
        return fact
    domain = (match["named"] or match["short"]).casefold().replace(" ", "_")
    return replace(fact, patch={DOMAINS: {domain: fact.patch}})


def _fact(masked: str, text: str) -> Fact | None:
    for rule in _RULES if _SUBJECT.match(masked) else ():
        match = rule.pattern.match(masked)
        if match is not None and (found := _read(rule, match, text)) is not None:
            return found
    return None


def _read(rule: _Rule, match: "regex.Match[str]", text: str) -> Fact | None:
    """Return the fact that a rule reads; ``None`` if it is none."""
    groups = {name: value for name, value in match.groupdict().items() if name != "role"}
    if rule.key == _STACK:
        return _stack(match, text)
    if groups.get("phrase"):
        return _preference(rule, match, text)
    if not groups:
        return Fact({rule.key: None})
    name = next(name for name, value in groups.items() if value)
    written = text[slice(*match.span(name))]
    if name == "lower":
        written = (
            _lower_place(written, match.string[match.end(name) :]) if rule.key == "location" else _first_word(written)
        )
    value = _trimmed(written)
    rest = match.string[match.start(name) + len(value) :]
    if not value or not _is_value(rule, name, value, rest, match):
        return None
    if rule.ends:
        is_noted = _IS_CHANGE.search(match.group()) or _NO_LONGER.match(rest.lstrip())
        return Fact(withdrawn={rule.key: [value]}, is_noted=bool(is_noted))
    return Fact({rule.key: value}, outcome=rule.outcome.format(value))


def _stack(match: "regex.Match[str]", text: str) -> Fact | None:
    """Return the tools of a stack; they are names, with a capital or a sign in them."""
    # A comma ends a phrase, but not a list.
    [listed_] = regex.findall(r"^[^.!?;:()–—]*(?:\.\p{L}[^.!?;:()–—]*)*", text[match.start("phrase") :])
    items = [item.strip() for item in regex.split(r",(?: and)? | and | plus ", listed_)]
    words = (item for item in items if regex.fullmatch(r"\S+(?: \S+){0,2}", item))
    tools = [item for item in words if regex.search(r"[\p{Lu}\d+#.]", item)]
    if not tools or tools != items:
        return None
    return Fact({DOMAINS: {"engineering": {"stack": tools}}})


def _first_word(value: str) -> str:
    """Return two small words without the second, if that goes on with the sentence ("joão and")."""
    first, _, second = value.partition(" ")
    return first if second in FUNCTION_WORDS else value


def _lower_place(value: str, rest: str) -> str:
    """Return the place at the start of two or three small words: one that is known, or that a country follows."""
    words = value.split(" ")
    of_country = regex.match(r", (?:the )?(\p{L}+)", rest)
    if of_country and of_country[1].casefold() in known_places():
        return value if not set(words) & FUNCTION_WORDS else ""
    starts = (" ".join(words[:length]) for length in range(len(words), 0, -1))
    return next((start for start in starts if start.removeprefix("the ").casefold() in known_places()), "")


def _trimmed(value: str) -> str:
    """Return a value without days and months behind it ("Berlin Monday to Friday")."""
    parts = value.rstrip("'’-&").split(" ")
    while parts and parts[-1].casefold().removesuffix("s") in CALENDAR_WORDS:
        parts.pop()
    return " ".join(parts)[:MAX_VALUE_CHARS]


def _is_value(  # noqa: PLR0911 - a case each
    rule: _Rule, group: str, value: str, rest: str, match: "regex.Match[str]"
) -> bool:
    first = value.casefold().split(" ", 1)[0]
    said = match.group().casefold()
    match rule.key, group:
        case "name", "lower":
            words = value.casefold().split(" ")
            is_word = any(word in _NO_LOWER_NAMES or word.endswith(("ed", "ing")) for word in words)
            return not is_word and bool(_ENDS_NAME.match(rest))
        case "name", _ if said.startswith("my "):
            return first not in _NO_NAMES
        case "name", _ if said.startswith("h"):
            is_word = (
                first in SENTENCE_STARTERS
                or first in FUNCTION_WORDS
                or bool(_NATION.fullmatch(first))
                or value.isupper()
            )
            return first not in _NO_NAMES and not is_word and bool(_ENDS_INTRODUCTION.match(rest))
        case "name", _:
            return first not in _NO_NAMES and bool(_ENDS_NAME.match(rest))
        case "location", "lower":
            return True
        case "location", _:
            return first not in _NO_PLACES and not _is_of_somebody(value, rest) and not _NOT_YET.match(rest)
        case "employer", "bare":
            return value not in _NO_EMPLOYERS and bool(_ENDS_BARE.match(rest))
        case "employer", _:
            return _is_employer(value, rest, match)
        case _:
            return True


def _is_of_somebody(value: str, rest: str) -> bool:
    """Report whether a value only says whose something is ("Ann's bakery"); McDonald's is a name."""
    return value.endswith(("'s", "’s")) and regex.match(r" \p{Ll}", rest) is not None


def _is_employer(value: str, rest: str, match: "regex.Match[str]") -> bool:
    words = value.casefold().split(" ")
    said = f" {match.group().casefold()} "
    if words[0] in _NO_NAMES or _is_of_somebody(value, rest) or _NOT_YET.match(rest):
        return False
    if "role" in match.groupdict():
        return bool(_JOB.search(match["role"])) and not _NO_JOB.search(match["role"])
    if said.startswith((" my company", " my new company", " my current company")):
        return not _NATION.fullmatch(words[0]) and bool(_ENDS_NAME.match(rest))
    if " been at " in said:
        return not _FOR_A_VISIT.match(rest)
    if " joined " in said:
        return words[-1] not in _CLUBS and "joined the " not in said and bool(_JOINS_WORK.match(rest))
    return " left " not in said or "job" in said or bool(_LEFT_WORK.match(rest))


def _preference(rule: _Rule, match: "regex.Match[str]", text: str) -> Fact | None:
    start, end = match.span("phrase")
    phrase = _phrase(text[start:end], match["phrase"])
    if rule.ends and "like" in match.group().casefold()[:start] and not _NO_LONGER.search(match.group()):
        return None
    if not phrase or _POINTS_ELSEWHERE.match(phrase) or _INCOMPLETE.search(phrase):
        return None
    if not rule.ends:
        over = _OVER.search(phrase)
        return Fact({"preferences": [phrase]}, {"preferences": [over["other"]]} if over else {})
    is_past = "used to" in match.group().casefold()[:start]
    instead = _INSTEAD.match(match.string, start + len(phrase))
    added = _phrase(text[slice(*instead.span("phrase"))], instead["phrase"]) if instead else ""
    # "I used to prefer vim, but that was ages ago" goes on with another sentence.
    if not added or _POINTS_ELSEWHERE.match(added) or (is_past and not _NOW.search(instead.group() if instead else "")):
        return Fact(withdrawn={"preferences": [phrase]}, is_noted=not is_past)
    return Fact({"preferences": [added]}, {"preferences": [phrase]}, outcome=f"I prefer {added} now.")


def _phrase(written: str, masked: str) -> str:
    """Return a phrase up to the end of its clause, without remarks in between."""
    end = _PHRASE_END.search(masked)
    phrase = written[: end.start() if end else None].strip()
    while tail := _PHRASE_TAIL.search(phrase):
        phrase = phrase[: tail.start()].strip()
    return phrase if len(phrase) <= MAX_VALUE_CHARS else ""

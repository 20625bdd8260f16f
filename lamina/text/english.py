"""Closed lists of English words that pure rules need; nothing here is complete, and nothing has to be."""


def listed(text: str) -> frozenset[str]:
    """Return the words of a text that lists them."""
    return frozenset(text.split())


FUNCTION_WORDS = listed(
    """
    a about above across after against all along also am among an and another any anybody anyone anything are aren't
    around as at away be because been before being below beneath beside besides between beyond both but by can can't
    cannot could couldn't despite did didn't do does doesn't doing don't done down during each either else enough even
    ever every everybody everyone everything except few for from further had hadn't has hasn't have haven't having he
    he'd he'll he's her here here's hers herself him himself his how how's however i i'd i'll i'm i've if in inside
    into is isn't it it'd it'll it's its itself just least less let let's many maybe me mine more most much must
    my myself near neither never no nobody none nor not nothing now of off often on once one only onto or other others
    our ours ourselves out outside over own per perhaps quite rather really same shall she she'd she'll she's should
    shouldn't since so some somebody someone something sometimes somewhere soon still such than that that's the their
    theirs them themselves then there there's these they they'd they'll they're they've this those though through thus
    till to together too toward towards under unless until up upon us very via was wasn't we we'd we'll we're we've
    were weren't what what's whatever when when's whenever where where's whereas wherever whether which whichever while
    who who's whoever whole whom whose why why's with within without won't would wouldn't yes yet you you'd you'll
    you're you've your yours yourself yourselves
    """
)
"""Never a name by themselves, capitalised or not; contractions too."""

SENTENCE_STARTERS = listed(
    """
    able absolutely accept according act actually add adding additionally admit again ago agree agreed ah aha alas
    almost alone alright already although always amazing anyhow anyway apart apparently apply applying appreciate
    arguably ask asking assume assuming at avoid aw awesome aww back basically beautiful become begin best better big
    book both break brilliant bring build building buy bye call calling care certainly change chat check checking cheers
    choose clean clearly close come coming compare complete completely confirm congrats congratulations consider
    continue cook cool copy correct count couple create creating crazy cut cute damn dang day days dear decide decided
    define definitely delete deploy deploying describe did dig discuss document double download draw drive drop due
    easy eat eating eek either enjoy especially eventually everyday exactly excellent excited exciting excuse exercise
    expect explain exploring extra fair family fantastic far fascinating fast feel feeling feels figure fill finally
    find fine finish finished first fix follow following food forget fortunately free fresh friend friends full fun
    funny generally get gets getting give giving glad go goes going gone good goodbye goodness got gotcha grab great
    greetings guess guys ha haha half hang happy hard hardly hate having health hear heard hello help helping hence hey
    hi hmm hold home honestly hooray hope hopefully hot howdy huge hugs i ideally imagine important impressive include
    including incredible indeed initially install instead interesting invite jeez join keep keeping kids kind know
    knowing last lastly late lately later lead leave leaving life like likely line list listen listening little live
    living load lol long look looking looks lose lost lots love loved lovely loving luckily lucky main make makes
    making man
    mark may mean meanwhile meet meeting merge might mind minor money moreover morning mostly move moving music my nah
    naturally nature need needs neat new news next nice nightly no nope normally note nothing obviously of oh ok okay
    old omg oof oops open ooh otherwise ouch our overall painting particularly pass past pay people perfect personally
    photo pick plan planning play playing please plus point possibly post practice prefer pretty previously probably
    provide pull push put putting question quick quickly quiet rain read reading ready recall recently recommend
    reflect regarding regardless relax remember remind remove replace reply report respect rest restart result return
    review right rise rock roughly run running sad said save say saying says scary search seconds see seeing seems seen
    select send seriously set several share sharing shoot short show shut sick similarly simple simply sit sleep slow
    small smart somehow sorry sound sounds speaking specifically spend spending split spring stand start starting stay
    step stop strange strong study super support sure surely surprisingly sweet switch take takes taking talk talking
    tell tests thank thankfully thanks therefore thing things think thinking third thought thoughts thrilled throw time
    tired today told tomorrow tonight top total totally tough travel tried true trust try trying turn turns two ugh
    uh um understand understood undo unfortunately unlike update upload usually use used using usual verify view visit
    wait waiting wake walk want wanted wants warm wash watch watching way weather week weekend weird welcome well
    whatever whenever wherever whew whoa whoever wild will win wish wishing wonder wonderful wondering woo word work
    working works worried worse worst worth wow write writing wrong yay yeah year years yep yesterday yikes yo yum yup
    second secondly third firstly both early earlier kinda gonna gotta wanna cause cos coz plz pls dude bro mom dad mum
    everytime hence hereby namely nevertheless nonetheless furthermore consequently accordingly ultimately essentially
    frankly literally certainly ordinarily occasionally rarely seldom sometimes somewhat suddenly three four five six
    seven eight nine ten hundred thousand million zero none half quarter step option example examples summary overview
    notes agenda action actions item items task tasks goal goals problem solution issue issues bug feature features
    data code file files user users input output error errors warning title name names date location address email
    phone subject message messages question questions answer answers key value values status type version total page
    woah woohoo btw phew mmm mm hmmm anytime yea awww ttyl bummer anyways ooo hah kudos fyi proud reminds believe bet
    catch fingers mmm took felt met must lemme gives means busy someday tons darn sooo ahh ohh hehe lmao
    table figure chapter section part hint tip tips info faq todo done monthly weekly daily yearly annual
    """
)
"""Words that open English sentences with a capital and are no names there."""

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
CALENDAR_WORDS = frozenset((*WEEKDAYS, *MONTHS)) | listed(
    "mon tue tues wed thu thur thurs fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec am pm"
)

OCCASIONS = listed(
    """
    winter winters summer summers spring springs autumn fall morning mornings evening evenings afternoon afternoons
    night nights weekend weekends weekday weekdays workdays week weeks month months year years decade day days
    mondays tuesdays wednesdays thursdays fridays saturdays sundays christmas easter ramadan end beginning start
    meantime meanwhile future past fact short general summary addition particular practice theory principle case
    truth reality total contrast return retrospect hindsight opinion experience view spare free time times twenties
    thirties forties fifties sixties teens childhood youth hurry rush house home family country city town village
    area neighbourhood neighborhood region culture kitchen garden team company office department job line work
    class school university college meeting workshop retro standup call hand average top side holiday holidays
    vacation behalf paper foot budget basis
    """
)
"""Of what stands behind "in" and "on" in front of a statement: when, and on which occasion, in ordinary life."""

NEGATIONS = listed("not no never none nobody nothing neither nor cannot without hardly lacks refuses stopped")

_UP_TO_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
NUMBER_WORDS = {word: number for number, word in enumerate(_UP_TO_TWENTY.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}

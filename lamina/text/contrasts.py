"""English words that stand on different sides of a contrast, so that one in the place of another says the opposite."""

from collections.abc import Iterable

from lamina.text.english import MONTHS, WEEKDAYS

# By the side they stand on. A statement must stand on the same side of each as another to say the same.
_CONTRASTS = """
before | after | during
with | without
more | less fewer
increase increases increased increasing rise rises rose raise raised higher up \
| decrease decreases decreased decreasing reduce reduces reduced reducing fall falls fell lower lowered down
buy buys buying bought purchase purchased purchases | sell sells selling sold
open opens opened opening | close closes closed closing
start starts started starting begin begins began | stop stops stopped stopping end ends ended quit
enable enables enabled enabling | off disable disables disabled disabling
import imports imported importing | export exports exported exporting
advantage advantages | disadvantage disadvantages
male males | female females
he him his himself | she her hers herself | they them their
same similar similarity similarities similarly | differ differs different difference differences differently
like likes liked love loves loved enjoy enjoys prefer prefers adore adores fond \
| dislike dislikes hate hates hated detest detests avoid avoids
unable | capable
always | never rarely seldom | sometimes occasionally | usually often
all every everybody everyone | some few | none nobody
accept accepts accepted approve approves approved allow allows allowed \
| reject rejects rejected deny denies denied forbid forbids forbidden refuse refused
win won wins | lose lost loses
pass passed passes succeed succeeded succeeds | fail failed fails broke broken
join joined joins hired | left leave leaves resigned fired
arrive arrived arrives | depart departed departs
good better best | bad worse worst
first | last | next
early earlier | late later
morning | noon afternoon | evening | night
yesterday | today | tomorrow
north | south | east | west
old older | new newer | young younger
big large bigger larger | small smaller | medium
hot warm | cold cool
high | low
fast quick | slow
left-hand | right-hand
min minimum | max maximum
black | white | red | blue | green | yellow | orange | purple | brown | grey gray | pink
mother mom mum | father dad | sister | brother | wife | husband | son | daughter | aunt | uncle
day days daily | week weeks weekly | month months monthly | year years yearly annual | hour hours hourly \
| minute minutes | second seconds
married | single divorced
public | private
mandatory required must | optional
safe | unsafe dangerous
possible | impossible
true | false
single | double
vegetarian | vegan
spring | summer | autumn | winter
upgrade upgraded | downgrade downgraded
add added adds | remove removed removes
""".strip().splitlines()
# A word here may also be there for its grammar: only one in the place of another is a contrast.
_OPPOSITES = """
on | off
in | out
into | out
to | from
above over | below under beneath
inside | outside
left | right
most | least
for | against
here | there
second | third | fourth | fifth | first | last
1st | 2nd | 3rd | 4th | 5th | last
front | back
top | bottom
upstairs | downstairs
push | pull
lock locks locked locking | unlock unlocks unlocked unlocking
login | logout
legal | illegal
rich | poor
happy | sad unhappy
strong | weak
easy | hard difficult
light | dark heavy
full | empty
wet | dry
loud | quiet
wide | narrow
deep | shallow
thick | thin
long longer longest | short shorter shortest
cheap cheaper cheapest | expensive
odd | even
income | expense expenses
debit | credit
lend lends lent | borrow borrows borrowed
teach teaches taught | learn learns learned learnt
send sends sent | receive receives received
give gives gave given | take takes took taken
upload uploads uploaded | download downloads downloaded
encrypt encrypts encrypted encrypting | decrypt decrypts decrypted decrypting
expand | collapse
show shows showed shown | hide hides hid hidden
maximize maximise | minimize minimise
boy boys | girl girls
man men | woman women
king | queen
gain gains gained | loss lost lose loses
create creates created | delete deletes deleted
lighter | darker heavier
ascending | descending
horizontal horizontally | vertical vertically
import | export
parent parents | child children
buyer buyers | seller sellers
employer employers | employee employees
cause causes | effect effects
""".strip().splitlines()
Side = tuple[int, int]
"""A contrast and the side of it that a word stands on; a word may stand in several contrasts."""


def _sides_of_words(contrasts: Iterable[str]) -> dict[str, frozenset[Side]]:
    sides: dict[str, frozenset[Side]] = {}
    for contrast, listing in enumerate(contrasts):
        for side, same_side in enumerate(listing.split("|")):
            for word in same_side.split():
                sides[word] = sides.get(word, frozenset()) | {(contrast, side)}
    return sides


SIDES = _sides_of_words(_CONTRASTS)
"""The sides of each word that turns a statement about without a "not"."""
OPPOSITES = _sides_of_words((*_CONTRASTS, *_OPPOSITES, " | ".join(WEEKDAYS), " | ".join(MONTHS), "am# | pm#"))
"""The same with words that are opposites only of each other."""

//! What no score overrules: pairs of statements of which the later one retires nothing of the earlier.

use super::*;

pub(super) const BESIDE: &str = "stands beside it";
pub(super) const TO_COME: &str = "still to come";
pub(super) const PART: &str = "changes a part of it";

/// The statement says more than one thing: "and" or several commas join them, or it gives several quantities.
pub(super) fn facets(facts: &Facts) -> bool {
    facts.joined.iter().any(|items| items.len() > 1) || facts.commas >= 2
}

/// The earlier one says where, when and how, and the later one only one of these.
pub(super) fn says_less(earlier: &Facts, later: &Facts) -> bool {
    (earlier.places >= 3 && later.places + 1 < earlier.places)
        // Much is said of it, and little of that again.
        || (earlier.stems.len() >= LONG_STEMS
            && 2 * later.stems.len() <= earlier.stems.len() + 2
            && ![Cue::Change, Cue::Return].iter().any(|cue| later.has(*cue)))
}

/// The later one says that the whole is over, wrong or settled.
pub(super) fn ends_all(earlier: &Facts, later: &Facts) -> bool {
    later.has(Cue::End)
        || later.has(Cue::Correct)
        || (earlier.has(Cue::Trouble) && later.has(Cue::Solved))
}

/// What a replacement that no word announces needs beyond the least score, in thousandths.
pub(super) const UNSAID: i64 = 1000;

/// More words with content than a plain statement of one fact has, and the cosine from which they count all the same.
pub(super) const CHATTER_STEMS: usize = 8;
pub(super) const VERY_CLOSE: i32 = 700;

/// Cosine of statements on one matter that share no word, in thousandths.
pub(super) const CLOSE: i32 = 400;

/// Stems that both have.
fn common(earlier: &Facts, later: &Facts) -> usize {
    let shared = |s: &&Stem| earlier.stems.iter().any(|e| e.stem == s.stem);
    later.stems.iter().filter(shared).count()
}

/// So many words with content on each side that the other lacks: two events of one person, not two values of one attribute.
const OWN_STEMS: usize = 3;

/// Stems that `one` has and `other` lacks.
fn alone(one: &Facts, other: &Facts) -> usize {
    let shared = |s: &&Stem| other.stems.iter().any(|o| o.stem == s.stem);
    one.stems.iter().filter(|s| !shared(s)).count()
}

fn is_long(earlier: &Facts, later: &Facts) -> bool {
    later.stems.len().max(earlier.stems.len()) > CHATTER_STEMS
}

fn very_close(closeness: Option<i32>) -> bool {
    closeness.is_some_and(|close| close >= VERY_CLOSE)
}

/// It corrects, settles or takes back something, so that even long statements that share little may be about one matter.
fn announced(earlier: &Facts, later: &Facts) -> bool {
    let shares_thing = || {
        later.stems.iter().any(|s| {
            !later.persons.contains(&s.stem) && earlier.stems.iter().any(|e| e.stem == s.stem)
        })
    };
    later.has(Cue::Correct)
        || later.has(Cue::Return)
        || (earlier.has(Cue::Trouble) && later.has(Cue::Solved) && shares_thing())
}

/// So little in common that the earlier one may be doubted at most.
pub(super) fn is_thin(earlier: &Facts, later: &Facts, closeness: Option<i32>) -> bool {
    is_long(earlier, later) && common(earlier, later) < 3 && !very_close(closeness)
}

/// Why nothing of `earlier` may be retired by `later`, whatever the score says.
pub(super) fn held(earlier: &Facts, later: &Facts, closeness: Option<i32>) -> Option<&'static str> {
    let shares = later
        .stems
        .iter()
        .any(|s| earlier.stems.iter().any(|e| e.stem == s.stem));
    // In ordinary talk everything resembles everything a little: chatter that shares a word or a matter retires nothing.
    let common = common(earlier, later);
    let enough = if announced(earlier, later) { 2 } else { 3 };
    if is_long(earlier, later) && common < enough && !very_close(closeness) {
        return Some("too little in common");
    }
    let says_so = [Cue::Change, Cue::Now, Cue::Correct, Cue::Return, Cue::Name]
        .iter()
        .any(|cue| later.has(*cue));
    if !says_so
        && !announced(earlier, later)
        && alone(earlier, later).min(alone(later, earlier)) >= OWN_STEMS
        && !very_close(closeness)
    {
        return Some("each tells of something of its own");
    }
    if later.has(Cue::Passing) || earlier.has(Cue::Passing) {
        return Some("in passing");
    }
    if !shares && later.matters.is_disjoint(&earlier.matters) && closeness.unwrap_or(0) < CLOSE {
        return Some("nothing in common");
    }
    let shares_name = later.stems.iter().any(|s| {
        earlier
            .stems
            .iter()
            .any(|e| e.stem == s.stem && (e.name || s.name))
    });
    let corrects = later.has(Cue::Correct);
    if later.question || earlier.question {
        return Some("a question");
    }
    if later.has(Cue::Add) && !corrects && !later.has(Cue::End) {
        return Some(BESIDE);
    }
    if later.has(Cue::Same) && !later.has(Cue::End) && !corrects {
        return Some("says what has not changed");
    }
    if later.has(Cue::Future) && !later.planned && !ends_all(earlier, later) {
        return Some(TO_COME);
    }
    if later.has(Cue::Part)
        || changes_part(earlier, later)
        || (((facets(earlier) && !facets(later)) || says_less(earlier, later))
            && !ends_all(earlier, later))
    {
        return Some(PART);
    }
    // Somebody else: the later one names a person that the earlier does not, and not the owner.
    let other_opens = later
        .opening_persons
        .iter()
        .any(|p| !earlier.persons.contains(p));
    if other_opens && !later.involves_owner && !corrects {
        return Some("about somebody else");
    }
    let was_other = earlier
        .opening_persons
        .iter()
        .any(|p| !later.persons.contains(p));
    if was_other && !earlier.involves_owner && !shares_name {
        return Some("about somebody else");
    }
    let opens_alike = later
        .opening
        .as_ref()
        .is_some_and(|o| earlier.stems.iter().any(|s| s.stem == *o));
    let shares_person = later.persons.iter().any(|p| earlier.persons.contains(p));
    if later.starts_other
        && !opens_alike
        && !shares_person
        && earlier.involves_owner
        && !later.involves_owner_beyond_telling()
    {
        return Some("about somebody else");
    }
    if !earlier.subject.is_empty()
        && !later.subject.is_empty()
        && !later.involves_owner
        && !corrects
        && !later
            .stems
            .iter()
            .any(|s| earlier.subject.last() == Some(&s.stem))
        && !earlier
            .stems
            .iter()
            .any(|s| later.subject.last() == Some(&s.stem))
    {
        return Some("has another subject");
    }
    let owners = |facts: &Facts| -> SmallSet<Box<str>> {
        facts.owned.iter().map(|(_, of)| of.clone()).collect()
    };
    let things = |facts: &Facts| -> SmallSet<Box<str>> {
        facts.owned.iter().map(|(thing, _)| thing.clone()).collect()
    };
    if !corrects
        && !owners(earlier).is_disjoint(&owners(later))
        && things(earlier).is_disjoint(&things(later))
    {
        return Some("about something else of theirs");
    }
    if !later.involves_owner
        && later.owned.iter().any(|(thing, of)| {
            earlier.stems.iter().any(|s| s.stem == *thing)
                && !earlier.stems.iter().any(|s| s.stem == *of)
        })
    {
        return Some("of somebody else");
    }
    if currencies(earlier, later) && !corrects {
        return Some("in another currency");
    }
    if fewer_of_a_kind(earlier, later) {
        return Some(PART);
    }
    let renews = [Cue::Name, Cue::Change, Cue::Correct, Cue::End, Cue::Return];
    if earlier.has(Cue::Name)
        && earlier.stems.len() <= NAMING_STEMS
        && !renews.iter().any(|cue| later.has(*cue))
    {
        return Some("not about its name");
    }
    if later.has(Cue::Name)
        && !corrects
        && earlier.stems.len() > NAMING_STEMS
        && !later.has(Cue::End)
    {
        return Some("holds under the new name");
    }
    let numbered = earlier.numbered.as_ref().zip(later.numbered.as_ref());
    if numbered.is_some_and(|(one, other)| one != other) && !corrects {
        return Some("another of the kind");
    }
    if other_thing(earlier, later) {
        return Some("about something else of the kind");
    }
    if amounts(earlier, later) == Amounts::Equal
        && !corrects
        && later.quantities.len() == earlier.quantities.len()
        && !later.has(Cue::Change)
        && !later.has(Cue::Now)
    {
        return Some("the same quantity");
    }
    None
}

/// The later one speaks of one side of an "and" of the earlier, and leaves the other side out.
pub(super) fn changes_part(earlier: &Facts, later: &Facts) -> bool {
    let said = |place: &usize| {
        earlier
            .stems
            .get(*place)
            .is_some_and(|stem| later.stems.iter().any(|s| s.stem == stem.stem))
    };
    earlier.joined.iter().any(|items| {
        let touched = items.iter().filter(|item| item.iter().any(said)).count();
        touched > 0 && touched < items.len()
    })
}

/// So many words with content say several things.
pub(super) const LONG_STEMS: usize = 7;
/// Most words with content of a statement that only says how something is called.
pub(super) const NAMING_STEMS: usize = 5;

/// Both name money, and not one currency is the same.
pub(super) fn currencies(earlier: &Facts, later: &Facts) -> bool {
    let money = |facts: &Facts| -> SmallSet<&'static str> {
        facts
            .quantities
            .iter()
            .filter_map(|q| match q.unit {
                Unit::Money(name) => Some(name),
                _ => None,
            })
            .collect()
    };
    let (one, other) = (money(earlier), money(later));
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}

/// The earlier one has several quantities of a kind, and the later one gives only some of them anew.
pub(super) fn fewer_of_a_kind(earlier: &Facts, later: &Facts) -> bool {
    later.quantities.iter().any(|one| {
        let count = |facts: &Facts| {
            facts
                .quantities
                .iter()
                .filter(|q| q.unit == one.unit)
                .count()
        };
        let comparable = !matches!(one.unit, Unit::Plain | Unit::Of(_));
        comparable && count(earlier) > count(later)
    })
}

/// The same noun near the beginning of both with another noun before it: "the invoicing database", "the analytics database".
pub(super) fn other_thing(earlier: &Facts, later: &Facts) -> bool {
    later.stems.iter().enumerate().take(4).any(|(at, noun)| {
        let Some(place) = earlier
            .stems
            .iter()
            .take(4)
            .position(|s| s.stem == noun.stem)
        else {
            return false;
        };
        if noun.at > 3 || earlier.stems[place].at > 3 {
            return false;
        }
        let modifier = |facts: &Facts, at: usize| {
            let before = facts.before.get(at).copied().flatten()?;
            facts.stems.get(before).cloned()
        };
        let (Some(one), Some(other)) = (modifier(earlier, place), modifier(later, at)) else {
            return false;
        };
        let digit = |s: &Stem| s.stem.bytes().next().is_some_and(|b| b.is_ascii_digit());
        !one.name
            && !other.name
            && !digit(&one)
            && !digit(&other)
            && one.stem != other.stem
            && !later.stems.iter().any(|s| s.stem == one.stem)
            && !earlier.stems.iter().any(|s| s.stem == other.stem)
    })
}

//! How long a statement counts: dates and durations in it, relative to the time it was told.

use foremind_types::{Ambient, Ttl};

use crate::words::Words;

const DAY_MS: i64 = 86_400_000;
/// A state of now counts until the end of the local day, but at least this long.
const SESSION_LEAST_MS: i64 = 6 * 3_600_000;

const MONTHS: &[&str] = &[
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
];
const WEEKDAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
];

/// The end that the statement itself names, if it names one.
pub(crate) fn stated_end(words: &Words, at: &Ambient) -> Option<Ttl> {
    let clock = Clock::new(at);
    for from in 0..words.len() {
        let word = words.folded(from);
        let end = match word {
            "until" | "till" | "til" | "through" => clock.date(words, from + 1),
            "by" => clock
                .date(words, from + 1)
                .filter(|_| from > 0 && words.folded(from - 1) != "born"),
            "for" => clock
                .span(words, from + 1, true)
                .or_else(|| clock.running(words, from)),
            "in" => clock.span(words, from + 1, false),
            "more" if from > 0 => clock.more(words, from),
            "another" => clock.duration(words, from + 1),
            "on" | "this" => clock.coming_day(words, from + 1),
            "next" => clock.next(words, from + 1),
            "due" => clock
                .date(words, from + 1)
                .or_else(|| clock.date(words, from + 2)),
            _ => None,
        };
        if let Some(until_ms) = end.filter(|ms| *ms > at.now_ms) {
            return Some(Ttl::Dated { until_ms });
        }
    }
    let now = (0..words.len()).any(|from| {
        matches!(words.folded(from), "tonight" | "today")
            || matches!(
                words.phrase(from, from + 2),
                "right now" | "this morning" | "this afternoon" | "this evening" | "just now"
            )
            || words.phrase(from, from + 3) == "at the wheel"
    });
    now.then(|| clock.session())
}

/// For the hours after the telling.
pub(crate) fn session(at: &Ambient) -> Ttl {
    Clock::new(at).session()
}

/// The local calendar at the time of telling.
struct Clock {
    now_ms: i64,
    offset_ms: i64,
    /// Days since 1970-01-01 in local time.
    today: i64,
}

impl Clock {
    fn new(at: &Ambient) -> Self {
        // Clamped to the years that the calendar below handles without overflow.
        let now_ms = at.now_ms.clamp(0, 253_402_300_799_000);
        let offset_ms = i64::from(at.utc_offset_min) * 60_000;
        Self {
            now_ms,
            offset_ms,
            today: (now_ms + offset_ms).div_euclid(DAY_MS),
        }
    }

    /// The end of a local day, in Unix milliseconds.
    fn end_of(&self, day: i64) -> i64 {
        (day + 1) * DAY_MS - self.offset_ms
    }

    fn session(&self) -> Ttl {
        Ttl::Session {
            until_ms: self.end_of(self.today).max(self.now_ms + SESSION_LEAST_MS),
        }
    }

    /// "March", "14 March", "the 14th of March", "March 14th", "tomorrow", "Friday", "next week", "2027".
    fn date(&self, words: &Words, from: usize) -> Option<i64> {
        let word = words.folded(from);
        match word {
            "the" | "about" | "around" | "late" | "mid" | "early" => {
                return self.date(words, from + 1);
            }
            "next" => return self.next(words, from + 1),
            "christmas" => return Some(self.end_of(self.coming(12, Some(25)))),
            "new" if words.folded(from + 1).starts_with("year") => {
                return Some(self.end_of(self.coming(12, Some(31))));
            }
            "tomorrow" => return Some(self.end_of(self.today + 1)),
            "on" | "in" => return self.date_plain(words, from + 1),
            _ => {}
        }
        if words.phrase(from, from + 3) == "end of the" || words.phrase(from, from + 2) == "end of"
        {
            let at = from
                + if words.folded(from + 2) == "the" {
                    3
                } else {
                    2
                };
            return match words.folded(at) {
                "month" => Some(self.end_of(last_of_month(self.today))),
                "year" => Some(self.end_of(days(civil(self.today).0, 12, 31))),
                "week" => Some(self.end_of(self.today + 6 - self.today_weekday())),
                _ => self.date_plain(words, at),
            };
        }
        self.date_plain(words, from)
    }

    fn date_plain(&self, words: &Words, from: usize) -> Option<i64> {
        let word = words.folded(from);
        if let Some(month) = month(word) {
            let day = day_number(words.folded(from + 1));
            return Some(self.end_of(self.coming(month, day)));
        }
        if let Some(day) = day_number(word) {
            let at = from + 1 + usize::from(words.folded(from + 1) == "of");
            if let Some(month) = month(words.folded(at)) {
                return Some(self.end_of(self.coming(month, Some(day))));
            }
            if !word.bytes().all(|b| b.is_ascii_digit()) {
                let (year, month, today) = civil(self.today);
                let (year, month) = match (day > today, month) {
                    (true, _) => (year, month),
                    (false, 12) => (year + 1, 1),
                    (false, _) => (year, month + 1),
                };
                return Some(self.end_of(days(year, month, day)));
            }
        }
        if let Ok(year) = word.parse::<i64>()
            && (2000..2200).contains(&year)
        {
            return Some(self.end_of(days(year, 12, 31)));
        }
        self.coming_day(words, from)
    }

    /// "Friday", "this week", "this month": this one, or the coming one.
    fn coming_day(&self, words: &Words, from: usize) -> Option<i64> {
        let word = words.folded(from);
        match word {
            "week" => return Some(self.end_of(self.today + 6 - self.today_weekday())),
            "month" => return Some(self.end_of(last_of_month(self.today))),
            "weekend" => return Some(self.end_of(self.today + 6 - self.today_weekday())),
            "year" => return Some(self.end_of(days(civil(self.today).0, 12, 31))),
            _ => {}
        }
        let weekday = WEEKDAYS.iter().position(|d| *d == word)? as i64;
        let ahead = (weekday - self.today_weekday()).rem_euclid(7);
        Some(self.end_of(self.today + if ahead == 0 { 7 } else { ahead }))
    }

    /// What follows "next".
    fn next(&self, words: &Words, from: usize) -> Option<i64> {
        let word = words.folded(from);
        if let Some(weekday) = WEEKDAYS.iter().position(|d| *d == word) {
            let ahead = (weekday as i64 - self.today_weekday()).rem_euclid(7);
            return Some(self.end_of(self.today + if ahead == 0 { 7 } else { ahead }));
        }
        if let Some(month) = month(word) {
            return Some(self.end_of(self.coming(month, None)));
        }
        match word {
            "week" => Some(self.end_of(self.today + 13 - self.today_weekday())),
            "month" => Some(self.end_of(last_of_month(last_of_month(self.today) + 1))),
            "year" => Some(self.end_of(days(civil(self.today).0 + 1, 12, 31))),
            _ => self.duration(words, from),
        }
    }

    /// "(the next) six weeks"; after "for" a plain duration in the past tense is none ("for 3 months now").
    fn span(&self, words: &Words, from: usize, past_possible: bool) -> Option<i64> {
        let mut at = from;
        let mut ahead = !past_possible;
        while matches!(
            words.folded(at),
            "the" | "next" | "another" | "at" | "least" | "about" | "another's" | "coming" | "only"
        ) {
            ahead |= matches!(words.folded(at), "next" | "another" | "coming");
            at += 1;
        }
        if !ahead {
            return None;
        }
        self.duration(words, at)
    }

    /// "in a sling for six weeks": ahead, unless the sentence looks back ("been there for six weeks now").
    fn running(&self, words: &Words, from: usize) -> Option<i64> {
        let looks_back = (from.saturating_sub(8)..from).any(|at| {
            matches!(
                words.folded(at),
                "been"
                    | "had"
                    | "was"
                    | "were"
                    | "went"
                    | "did"
                    | "lived"
                    | "worked"
                    | "took"
                    | "tried"
                    | "spent"
                    | "played"
                    | "stayed"
            )
        });
        let end = (from..from + 5)
            .find(|at| matches!(words.folded(*at), "day" | "days" | "week" | "weeks"))?;
        let since = matches!(
            words.folded(end + 1),
            "now" | "already" | "in" | "and" | "straight" | "last"
        );
        if looks_back || since {
            return None;
        }
        self.duration(words, from + 1)
    }

    /// "five more weeks".
    fn more(&self, words: &Words, at: usize) -> Option<i64> {
        let count = NUMBERS.iter().position(|n| *n == words.folded(at - 1));
        let count = match count {
            Some(count) => count as i64,
            None => i64::from(words.folded(at - 1).parse::<u16>().ok()?),
        };
        match words.folded(at + 1) {
            "days" => Some(self.end_of(self.today + count)),
            "weeks" => Some(self.end_of(self.today + count * 7)),
            "months" => Some(self.end_of(self.today + count * 31)),
            _ => None,
        }
    }

    /// "six weeks", "a month", "10 days", counted from now.
    fn duration(&self, words: &Words, from: usize) -> Option<i64> {
        let count = match words.folded(from) {
            "a" | "an" => 1,
            "couple" => 2,
            "few" => 3,
            word => match NUMBERS.iter().position(|n| *n == word) {
                Some(number) => number as i64,
                None => word.parse::<u16>().map_or(0, i64::from),
            },
        };
        let (count, unit_at) = if count == 0 {
            (1, from)
        } else {
            (
                count,
                from + 1 + usize::from(words.folded(from + 1) == "of"),
            )
        };
        let unit = words.folded(unit_at);
        let days = match unit.strip_suffix('s').unwrap_or(unit) {
            "hour" => return Some(self.now_ms + count * 3_600_000),
            "day" => 1,
            "week" => 7,
            "month" => 31,
            "year" => 366,
            _ => return None,
        };
        // "in weeks" says nothing of how many.
        (unit_at > from || !unit.ends_with('s')).then(|| self.end_of(self.today + count * days))
    }

    /// The coming such day; without a day the last of the month.
    fn coming(&self, month: u32, day: Option<u32>) -> i64 {
        let (year, _, _) = civil(self.today);
        let at = |year| match day {
            Some(day) => days(year, month, day),
            None => last_of_month(days(year, month, 1)),
        };
        if at(year) >= self.today {
            at(year)
        } else {
            at(year + 1)
        }
    }

    /// 0 is Monday.
    fn today_weekday(&self) -> i64 {
        (self.today + 3).rem_euclid(7)
    }
}

fn month(word: &str) -> Option<u32> {
    let at = MONTHS.iter().position(|m| {
        *m == word
            || (word.len() == 3 && m.starts_with(word))
            || (word == "sept" && *m == "september")
    })?;
    Some(at as u32 + 1)
}

/// "14", "14th": a day of a month.
fn day_number(word: &str) -> Option<u32> {
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|suffix| word.strip_suffix(suffix))
        .unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// Days since 1970-01-01. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = i64::from((month + 9) % 12);
    let of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of days since 1970-01-01. Same source.
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    } as u32;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn last_of_month(day: i64) -> i64 {
    let (year, month, _) = civil(day);
    if month == 12 {
        days(year + 1, 1, 1) - 1
    } else {
        days(year, month + 1, 1) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday, 29 November 2026, 10:00 UTC.
    fn told() -> Ambient {
        Ambient {
            now_ms: days(2026, 11, 29) * DAY_MS + 10 * 3_600_000,
            utc_offset_min: 0,
            entropy: [0; 32],
        }
    }

    fn check(text: &str, expected: Option<(i64, u32, u32)>) {
        let end = stated_end(&Words::of(text), &told()).and_then(Ttl::until_ms);
        // An end at midnight belongs to the day before it.
        let day = end.map(|ms| civil((ms - 1).div_euclid(DAY_MS)));
        assert_eq!(day, expected, "{text}");
    }

    #[test]
    fn calendar_is_its_own_inverse() {
        for day in (-1000..60_000).step_by(17) {
            let (y, m, d) = civil(day);
            assert_eq!(days(y, m, d), day);
        }
        assert_eq!(civil(0), (1970, 1, 1));
    }

    #[test]
    fn dates_and_durations() {
        check("no weight on it until 14 December", Some((2026, 12, 14)));
        check("off gluten until March", Some((2027, 3, 31)));
        check("I'm on antibiotics until Friday", Some((2026, 12, 4)));
        check("boot on for another five weeks", Some((2027, 1, 3)));
        check("no driving for the next 10 days", Some((2026, 12, 9)));
        check(
            "the stitches come out on the 19th, until the 19th it stays dry",
            Some((2026, 12, 19)),
        );
        check("embryo transfer next Wednesday", Some((2026, 12, 2)));
        check("surgery in two weeks", Some((2026, 12, 13)));
        check("living in Harajuku for 3 months now", None);
        check("I'm allergic to nuts", None);
        check("I've had asthma for years", None);
        check("my arm is in a sling for six weeks", Some((2027, 1, 10)));
        check("I've been on crutches for six weeks", None);
        check("no weight on it, five more weeks", Some((2027, 1, 3)));
        check("no wine till Christmas", Some((2026, 12, 25)));
        check("until the end of the month", Some((2026, 11, 30)));
    }

    #[test]
    fn states_of_now_end_with_the_local_day() {
        let ttl = stated_end(&Words::of("I'm driving right now"), &told());
        assert_eq!(
            ttl,
            Some(Ttl::Session {
                until_ms: days(2026, 11, 30) * DAY_MS
            })
        );
    }
}

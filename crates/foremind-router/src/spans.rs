//! The time of the past that a question names: "last March", "two weeks ago", "letzte Woche", "en mayo de 2023".

use foremind_types::Ambient;

use crate::lifetime::{Clock, WEEKDAYS, civil, day_number, days, last_of_month, month, number};
use crate::words::Words;

/// Words between which and a month or year a time is meant ("may I" names none).
const MARKS: &[&str] = &[
    "in", "last", "of", "during", "since", "this", "early", "late", "mid", "until", "before",
    "after", "im", "letzten", "en", "em", "de", "di", "nel", "le", "past", "previous",
];

/// From and until, Unix milliseconds; the first that is named. A month without a year is the last that has begun.
pub(crate) fn span(words: &Words, at: &Ambient) -> Option<(i64, i64)> {
    let clock = Clock::new(at);
    let (first, last) = (0..words.len()).find_map(|at| span_at(words, at, &clock))?;
    Some((clock.end_of(first - 1), clock.end_of(last)))
}

/// First and last day of what begins at a word.
fn span_at(words: &Words, at: usize, clock: &Clock) -> Option<(i64, i64)> {
    let word = words.folded(at);
    let before = |back: usize| at.checked_sub(back).map_or("", |at| words.folded(at));
    let (next, today) = (words.folded(at + 1), clock.today);
    if matches!(word, "yesterday" | "gestern" | "ayer" | "ontem" | "ieri") {
        return Some((today - 1, today - 1));
    }
    if let Some(month) = month(word) {
        let day = day_number(before(1))
            .or_else(|| day_number(before(2)).filter(|_| matches!(before(1), "of" | "de")));
        let after = day_number(next).filter(|_| day.is_none());
        let year_at = at + 1 + usize::from(after.is_some());
        let year_at = year_at + usize::from(matches!(words.folded(year_at), "of" | "de" | "del"));
        let year = year(words.folded(year_at), clock);
        let day = day.or(after);
        if day.is_none() && year.is_none() && !MARKS.contains(&before(1)) {
            return None;
        }
        let this_year = civil(today).0;
        let year = year.unwrap_or_else(|| {
            let begun = days(this_year, month, day.unwrap_or(1)) <= today;
            if begun { this_year } else { this_year - 1 }
        });
        let first = days(year, month, day.unwrap_or(1));
        return Some(match day {
            Some(_) => (first, first),
            None => (first, last_of_month(first)),
        });
    }
    if let Some(year) = year(word, clock).filter(|_| MARKS.contains(&before(1))) {
        return Some((days(year, 1, 1), days(year, 12, 31)));
    }
    if matches!(
        word,
        "last" | "previous" | "past" | "letzte" | "letzten" | "letztes" | "letzter"
    ) {
        return unit(next).and_then(|unit| past(unit, clock)).or_else(|| {
            let weekday = WEEKDAYS.iter().position(|day| *day == next)? as i64;
            let back = (clock.today_weekday() - weekday - 1).rem_euclid(7) + 1;
            Some((today - back, today - back))
        });
    }
    let stem = next.trim_end_matches(['a', 'o', 'e']);
    if matches!(stem, "pasad" | "passad" | "dernier" | "dernièr" | "scors") {
        return past(unit(word)?, clock);
    }
    let count = number(word).filter(|count| (1..=1_000).contains(count))?;
    let unit = unit(next)?;
    let ago = matches!(words.folded(at + 2), "ago" | "fa" | "atras")
        || matches!(before(1), "vor" | "hace" | "ha" | "a");
    // The larger the unit, the less exactly it is meant.
    let about = match unit {
        1 => 0,
        7 => 3,
        31 => 15,
        _ => 183,
    };
    let day = today - count * unit;
    ago.then_some((day - about, (day + about).min(today)))
}

/// Days of a unit of time.
fn unit(word: &str) -> Option<i64> {
    Some(match word {
        "day" | "days" | "tag" | "tagen" | "dia" | "dias" | "jour" | "jours" | "giorno"
        | "giorni" => 1,
        "week" | "weeks" | "woche" | "wochen" | "semana" | "semanas" | "semaine" | "semaines"
        | "settimana" | "settimane" => 7,
        "month" | "months" | "monat" | "monaten" | "mes" | "meses" | "mois" | "mese" | "mesi" => 31,
        "year" | "years" | "jahr" | "jahren" | "ano" | "anos" | "an" | "ans" | "annee" | "anno"
        | "anni" => 366,
        _ => return None,
    })
}

/// The week, month or year before this one.
fn past(unit: i64, clock: &Clock) -> Option<(i64, i64)> {
    let monday = clock.today - clock.today_weekday();
    let (year, month, _) = civil(clock.today);
    match unit {
        7 => Some((monday - 7, monday - 1)),
        31 => {
            let last = days(year, month, 1) - 1;
            let (year, month, _) = civil(last);
            Some((days(year, month, 1), last))
        }
        366 => Some((days(year - 1, 1, 1), days(year - 1, 12, 31))),
        _ => None,
    }
}

/// A year that has begun.
fn year(word: &str, clock: &Clock) -> Option<i64> {
    let year = word.parse().ok().filter(|_| word.len() == 4)?;
    (1970..=civil(clock.today).0)
        .contains(&year)
        .then_some(year)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked on Wednesday, 2026-11-18.
    /// Year, month, day.
    type Day = (i64, u32, u32);

    fn check(text: &str, expected: Option<(Day, Day)>) {
        let day_ms = 86_400_000;
        let at = Ambient {
            now_ms: days(2026, 11, 18) * day_ms + 9 * 3_600_000,
            utc_offset_min: 0,
            entropy: [0; 32],
        };
        let found = span(&Words::of(text), &at);
        let days = found.map(|(from, to)| (civil(from / day_ms), civil(to / day_ms - 1)));
        assert_eq!(days, expected, "{text}");
    }

    #[test]
    fn times_of_the_past() {
        let month = |year, month, last| Some(((year, month, 1), (year, month, last)));
        let day = |year, month, day| Some(((year, month, day), (year, month, day)));
        check("What did I do last March?", month(2026, 3, 31));
        check("Where was I in December?", month(2025, 12, 31));
        check("Was habe ich im Mai 2023 gekauft?", month(2023, 5, 31));
        check("que compré en mayo de 2023", month(2023, 5, 31));
        check("What happened on 8 May 2023?", day(2023, 5, 8));
        check("What happened on May 8th, 2023?", day(2023, 5, 8));
        check("Who called on the 3rd of November?", day(2026, 11, 3));
        check("Who called yesterday?", day(2026, 11, 17));
        check("Whom did I meet last Friday?", day(2026, 11, 13));
        check("Whom did I meet last Wednesday?", day(2026, 11, 11));
        check(
            "what did I buy last week",
            Some(((2026, 11, 9), (2026, 11, 15))),
        );
        check("letzte Woche", Some(((2026, 11, 9), (2026, 11, 15))));
        check("la semana pasada", Some(((2026, 11, 9), (2026, 11, 15))));
        check("last month", month(2026, 10, 31));
        check("in 2024", Some(((2024, 1, 1), (2024, 12, 31))));
        check("last year", Some(((2025, 1, 1), (2025, 12, 31))));
        check("two weeks ago", Some(((2026, 11, 1), (2026, 11, 7))));
        check("vor zwei Wochen", Some(((2026, 11, 1), (2026, 11, 7))));
        check("10 days ago", day(2026, 11, 8));
    }

    #[test]
    fn what_names_no_time() {
        for text in [
            "May I eat this?",
            "How do I march in step?",
            "Is 2024 a good number?",
            "the last of them",
            "two weeks of holiday",
            "in 2099",
            "",
        ] {
            check(text, None);
        }
    }
}

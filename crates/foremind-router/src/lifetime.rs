//! How long a statement counts: dates and durations in it, relative to the time it was told.

use foremind_types::{Ambient, Ttl};

use crate::words::Words;

const DAY_MS: i64 = 86_400_000;
/// A state of now counts until the end of the local day, but at least this long.
const SESSION_LEAST_MS: i64 = 6 * 3_600_000;

/// In English, January first.
pub(crate) const MONTHS: &[&str] = &[
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
/// Numbers of German, French, Spanish, Portuguese and Italian.
const FOREIGN_NUMBERS: &[(&str, i64)] = &[
    ("ein", 1),
    ("eine", 1),
    ("einen", 1),
    ("un", 1),
    ("une", 1),
    ("una", 1),
    ("um", 1),
    ("uma", 1),
    ("uno", 1),
    ("zwei", 2),
    ("deux", 2),
    ("dos", 2),
    ("dois", 2),
    ("duas", 2),
    ("due", 2),
    ("drei", 3),
    ("trois", 3),
    ("tres", 3),
    ("tre", 3),
    ("vier", 4),
    ("quatre", 4),
    ("cuatro", 4),
    ("quatro", 4),
    ("quattro", 4),
    ("funf", 5),
    ("cinq", 5),
    ("cinco", 5),
    ("cinque", 5),
    ("sechs", 6),
    ("six", 6),
    ("seis", 6),
    ("sei", 6),
    ("sieben", 7),
    ("sept", 7),
    ("siete", 7),
    ("sete", 7),
    ("sette", 7),
    ("acht", 8),
    ("huit", 8),
    ("ocho", 8),
    ("oito", 8),
    ("otto", 8),
    ("neun", 9),
    ("neuf", 9),
    ("nueve", 9),
    ("nove", 9),
    ("zehn", 10),
    ("dix", 10),
    ("diez", 10),
    ("dez", 10),
    ("dieci", 10),
];
/// Months of German, French, Spanish, Portuguese and Italian that are no English word.
const FOREIGN_MONTHS: &[(&str, u32)] = &[
    ("januar", 1),
    ("janvier", 1),
    ("enero", 1),
    ("janeiro", 1),
    ("gennaio", 1),
    ("februar", 2),
    ("fevrier", 2),
    ("febrero", 2),
    ("fevereiro", 2),
    ("febbraio", 2),
    ("marz", 3),
    ("mars", 3),
    ("marzo", 3),
    ("marco", 3),
    ("avril", 4),
    ("abril", 4),
    ("aprile", 4),
    ("mai", 5),
    ("mayo", 5),
    ("maio", 5),
    ("maggio", 5),
    ("juni", 6),
    ("juin", 6),
    ("junio", 6),
    ("junho", 6),
    ("giugno", 6),
    ("juli", 7),
    ("juillet", 7),
    ("julio", 7),
    ("julho", 7),
    ("luglio", 7),
    ("aout", 8),
    ("agosto", 8),
    ("septembre", 9),
    ("septiembre", 9),
    ("setembro", 9),
    ("settembre", 9),
    ("oktober", 10),
    ("octobre", 10),
    ("octubre", 10),
    ("outubro", 10),
    ("ottobre", 10),
    ("novembre", 11),
    ("noviembre", 11),
    ("novembro", 11),
    ("dezember", 12),
    ("decembre", 12),
    ("diciembre", 12),
    ("dezembro", 12),
    ("dicembre", 12),
];
pub(crate) const WEEKDAYS: &[&str] = &[
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
            "on" | "this" => clock
                .coming_day(words, from + 1)
                .filter(|_| !repeats(words, from) && !begins(words, from))
                .filter(|_| word != "on" || !happened(words, from)),
            "durante" | "per" | "pendant" | "pour" | "fur" | "por" => {
                clock.foreign_duration(words, from + 1)
            }
            "lang" | "largo" if from >= 2 => clock.foreign_duration(words, from - 2),
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
        (matches!(words.folded(from), "tonight" | "today") && !begins(words, from))
            || matches!(
                words.phrase(from, from + 2),
                "right now" | "this morning" | "this afternoon" | "this evening" | "just now"
            )
            || words.phrase(from, from + 3) == "at the wheel"
    });
    now.then(|| clock.session())
}

/// "from today", "as of this month": then it begins.
fn begins(words: &Words, at: usize) -> bool {
    at > 0 && matches!(words.folded(at - 1), "from" | "of" | "starting" | "since")
}

/// "on Thursday evenings": every week.
fn repeats(words: &Words, on: usize) -> bool {
    matches!(
        words.folded(on + 2),
        "mornings" | "afternoons" | "evenings" | "nights" | "lunchtimes"
    )
}

/// "I moved to Braga on Sunday": the Sunday before.
fn happened(words: &Words, on: usize) -> bool {
    (on.saturating_sub(6)..on).any(|at| {
        let word = words.folded(at);
        PAST.contains(&word) || (word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed"))
    })
}

/// Verbs in the past that do not end in "ed".
const PAST: &[&str] = &[
    "was", "were", "went", "had", "got", "did", "came", "bought", "sold", "left", "quit", "began",
    "met", "saw", "took", "gave", "made", "lost", "found", "broke", "wrote", "ran", "fell", "won",
    "paid", "sent", "told",
];

/// The local day from which a statement says that it holds, when that is to come: "from 15 March", "as of 1 July",
/// "on 1 June our office moves", "next month we". The start of that day in Unix milliseconds.
pub(crate) fn stated_start(words: &Words, at: &Ambient) -> Option<i64> {
    let clock = Clock::new(at);
    let start = |day: i64| Some(day * DAY_MS - clock.offset_ms);
    let future = (0..words.len()).any(|w| {
        let word = words.folded(w);
        word.ends_with("'ll")
            || matches!(
                word,
                "will" | "werden" | "wird" | "switch" | "switches" | "moves" | "starts" | "moving"
            )
            || matches!(words.phrase(w, w + 2), "going to" | "get to")
    });
    if let Some(day) = unspaced_start(&clock, words) {
        return start(day);
    }
    for from in 0..words.len() {
        let word = words.folded(from);
        let opens = {
            let before = words.word(from).before;
            before.has(crate::words::Gap::SENTENCE) || before.has(crate::words::Gap::CLAUSE)
        };
        let date = match word {
            "from" | "starting" | "ab" | "desde" | "da" | "dal" | "des" => from + 1,
            "tomorrow" if future => return start(clock.today + 1),
            "of" if from > 0 && words.folded(from - 1) == "as" => from + 1,
            "partir" if from > 0 => from + 2,
            "in" if opens || future => {
                // "In two weeks we move."
                if let Some(end) = clock.duration(words, from + 1) {
                    let day = (end - 1 + clock.offset_ms).div_euclid(DAY_MS);
                    return start(day).filter(|_| day > clock.today);
                }
                from + 1
            }
            "on" | "am" | "im" if opens || future => from + 1,
            "next" if opens || future => {
                let week = clock.today - clock.today_weekday() + 7;
                let (year, _, _) = civil(clock.today);
                match words.folded(from + 1) {
                    "week" => return start(week),
                    "month" => return start(last_of_month(clock.today) + 1),
                    "year" => return start(days(year + 1, 1, 1)),
                    word if WEEKDAYS.contains(&word) => {
                        return clock.start(words, from + 1).and_then(|(day, _)| start(day));
                    }
                    "spring" => return start(clock.first(3, None)),
                    "summer" => return start(clock.first(6, None)),
                    "autumn" | "fall" => return start(clock.first(9, None)),
                    "winter" => return start(clock.first(12, None)),
                    word => {
                        if let Some(month) = self::month(word) {
                            return start(clock.first(month, None));
                        }
                    }
                }
                continue;
            }
            _ => continue,
        };
        let Some((day, end)) = clock.start(words, date) else {
            continue;
        };
        // "from the 10th to the 17th" is a span, no beginning of what lasts.
        let span = matches!(
            words.folded(end),
            "to" | "until" | "till" | "through" | "bis"
        );
        // "The overtime from December is paid" tells which overtime.
        let which = word == "from"
            && !opens
            && matches!(
                words.folded(end),
                "is" | "was" | "are" | "were" | "has" | "have" | "came" | "arrived"
            );
        if !span && !which && day > clock.today {
            return start(day);
        }
    }
    None
}

/// "3月1日から", "3월 1일부터", "从5月起": a month, perhaps a day, and the mark that it begins there.
fn unspaced_start(clock: &Clock, words: &Words) -> Option<i64> {
    let at = (0..words.len()).find(|at| matches!(words.folded(at + 1), "月" | "월"))?;
    let month = words
        .folded(at)
        .parse()
        .ok()
        .filter(|m| (1..=12).contains(m))?;
    let has_day = matches!(words.folded(at + 3), "日" | "号" | "號" | "일");
    let day = if has_day {
        day_number(words.folded(at + 2))
    } else {
        None
    };
    let behind = at + if has_day { 4 } else { 2 };
    let begins = matches!(words.folded(behind), "起" | "开" | "開" | "부" | "か")
        && (words.folded(behind) != "か" || words.folded(behind + 1) == "ら");
    let day = clock.first(month, day);
    (begins && day > clock.today).then_some(day)
}

/// For the hours after the telling.
pub(crate) fn session(at: &Ambient) -> Ttl {
    Clock::new(at).session()
}

/// The local calendar at the time of telling.
pub(crate) struct Clock {
    now_ms: i64,
    offset_ms: i64,
    /// Days since 1970-01-01 in local time.
    pub(crate) today: i64,
}

impl Clock {
    pub(crate) fn new(at: &Ambient) -> Self {
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
    pub(crate) fn end_of(&self, day: i64) -> i64 {
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

    /// "duas semanas", "fünf Tage": a number and a unit of German, French, Spanish, Portuguese or Italian.
    fn foreign_duration(&self, words: &Words, from: usize) -> Option<i64> {
        let count = words.folded(from);
        let count = FOREIGN_NUMBERS
            .iter()
            .find(|(name, _)| *name == count)
            .map(|(_, number)| *number)
            .or_else(|| count.parse::<u16>().ok().map(i64::from))?;
        let days = match words.folded(from + 1) {
            "tag" | "tage" | "tagen" | "jour" | "jours" | "dia" | "dias" | "giorno" | "giorni" => 1,
            "woche" | "wochen" | "semaine" | "semaines" | "semana" | "semanas" | "settimana"
            | "settimane" => 7,
            "monat" | "monate" | "monaten" | "mois" | "mes" | "meses" | "mese" | "mesi" => 31,
            _ => return None,
        };
        Some(self.end_of(self.today + count * days))
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

    /// A date as a day to begin with, and the word behind it.
    fn start(&self, words: &Words, from: usize) -> Option<(i64, usize)> {
        let word = words.folded(from);
        if matches!(word, "the" | "dem" | "el" | "du" | "le" | "of" | "about") {
            return self.start(words, from + 1);
        }
        let weekday = WEEKDAYS.iter().position(|d| *d == word);
        let at = from + usize::from(weekday.is_some());
        let (word, next) = (words.folded(at), words.folded(at + 1));
        if let Some(month) = month(word) {
            return match day_number(next) {
                Some(day) => Some((self.first(month, Some(day)), at + 2)),
                None => Some((self.first(month, None), at + 1)),
            };
        }
        if let Some(day) = day_number(word.strip_suffix("er").unwrap_or(word)) {
            let of = at + 1 + usize::from(matches!(next, "of" | "de"));
            if let Some(month) = month(words.folded(of)) {
                return Some((self.first(month, Some(day)), of + 1));
            }
            return None;
        }
        let ahead = (weekday? as i64 - self.today_weekday()).rem_euclid(7);
        Some((self.today + if ahead == 0 { 7 } else { ahead }, at))
    }

    /// The coming such day, or the first day of the coming such month. What lies a month back or less is past, not of next
    /// year.
    fn first(&self, month: u32, day: Option<u32>) -> i64 {
        let (year, _, _) = civil(self.today);
        let this = days(year, month, day.unwrap_or(1));
        if this + 31 >= self.today {
            this
        } else {
            days(year + 1, month, day.unwrap_or(1))
        }
    }

    /// 0 is Monday.
    pub(crate) fn today_weekday(&self) -> i64 {
        (self.today + 3).rem_euclid(7)
    }
}

pub(crate) fn month(word: &str) -> Option<u32> {
    if let Some((_, month)) = FOREIGN_MONTHS.iter().find(|(name, _)| *name == word) {
        return Some(*month);
    }
    let at = MONTHS.iter().position(|m| {
        *m == word
            || (word.len() == 3 && m.starts_with(word))
            || (word == "sept" && *m == "september")
    })?;
    Some(at as u32 + 1)
}

/// A number in figures or words.
pub(crate) fn number(word: &str) -> Option<i64> {
    let foreign = FOREIGN_NUMBERS.iter().find(|(name, _)| *name == word);
    match NUMBERS.iter().position(|number| *number == word) {
        Some(number) => Some(number as i64),
        None if foreign.is_some() => foreign.map(|(_, number)| *number),
        None if matches!(word, "a" | "an") => Some(1),
        None => word.parse().ok(),
    }
}

/// "14", "14th": a day of a month.
pub(crate) fn day_number(word: &str) -> Option<u32> {
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|suffix| word.strip_suffix(suffix))
        .unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// Days since 1970-01-01. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = i64::from((month + 9) % 12);
    let of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of days since 1970-01-01. Same source.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
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

pub(crate) fn last_of_month(day: i64) -> i64 {
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
    fn beginnings_to_come() {
        let check = |text: &str, expected: Option<(i64, u32, u32)>| {
            let start = stated_start(&Words::of(text), &told());
            assert_eq!(
                start.map(|ms| civil(ms.div_euclid(DAY_MS))),
                expected,
                "{text}"
            );
        };
        check(
            "From 15 March the branch will be on Nelson Square",
            Some((2027, 3, 15)),
        );
        check("As of 1 July I'll get 30 days", Some((2027, 7, 1)));
        check("In May they're going to lay a lawn", Some((2027, 5, 1)));
        check("On 1 April I'm moving to a studio", Some((2027, 4, 1)));
        check("Next month we move to Leeds", Some((2026, 12, 1)));
        check(
            "Starting 1 December I go down to 32 hours",
            Some((2026, 12, 1)),
        );
        check(
            "À partir du 1er mars, les sauvegardes auront lieu à quatre heures",
            Some((2027, 3, 1)),
        );
        check("Ab dem 1. April zahlen wir 935 Euro", Some((2027, 4, 1)));
        check("In two weeks we'll move the office", Some((2026, 12, 13)));
        check(
            "Next Monday we switch to the new rota",
            Some((2026, 11, 30)),
        );
        check("3월 1일부터 테니스를 치기로 했어요", Some((2027, 3, 1)));
        check("4月から新しい家です", Some((2027, 4, 1)));
        check("We're flying to Crete on 9 May", None);
        check("a room from the 10th to the 17th of July", None);
        check("I started on 12 November", None);
        check("The overtime from December is in my account", None);
        check("from 1 to 3 am UTC", None);
        check("As of 20 November I live here", None);
    }

    #[test]
    fn days_that_repeat_or_are_past_end_nothing() {
        check("I go bouldering on Thursday evenings", None);
        check("I moved to Braga on Sunday", None);
        check("Rashid can sign releases as of today", None);
        check("I earn more from this month on", None);
        check(
            "Durante duas semanas correm no servidor",
            Some((2026, 12, 13)),
        );
        check(
            "Jules Schule fängt fünf Tage lang um zehn an",
            Some((2026, 12, 4)),
        );
        check(
            "Per due settimane ci colleghiamo con il telefono",
            Some((2026, 12, 13)),
        );
        check("lunch with Ana on Thursday", Some((2026, 12, 3)));
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

//! The dates of the benchmarks' sessions, as they are written there.

const DAY_MS: i64 = 86_400_000;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// `2023/05/25 (Thu) 20:21` or `1:56 pm on 8 May, 2023` as Unix milliseconds, UTC.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .collect();
    match words.as_slice() {
        [date, _, time] => {
            let mut parts = date.split('/').map(str::parse::<i64>);
            let mut next = || parts.next()?.ok();
            Some(day_ms(next()?, next()?, next()?)? + time_ms(time, None)?)
        }
        [time, half, "on", day, month, year] => {
            let month = month.to_lowercase();
            let month = MONTHS.iter().position(|name| month.starts_with(name))?;
            let noon = match *half {
                "am" => 0,
                "pm" => 12,
                _ => return None,
            };
            let day = day_ms(year.parse().ok()?, month as i64 + 1, day.parse().ok()?)?;
            Some(day + time_ms(time, Some(noon))?)
        }
        _ => None,
    }
}

/// Midnight of a day of the Gregorian calendar.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years are counted from March, so that leap days
/// come last.
fn day_ms(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(days * DAY_MS)
}

/// `noon` is when the half of the day begins that hours are counted in.
fn time_ms(text: &str, noon: Option<i64>) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours = match noon {
        Some(noon) => hours % 12 + noon,
        None => hours,
    };
    (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_read() {
        // 2000-03-01 is day 11,017 of the Unix era, 2023-05-25 day 19,502.
        assert_eq!(parse("2000/03/01 (Wed) 00:00"), Some(11_017 * DAY_MS));
        let evening = 19_502 * DAY_MS + (20 * 60 + 21) * 60_000;
        assert_eq!(parse("2023/05/25 (Thu) 20:21"), Some(evening));
        assert_eq!(parse("8:21 pm on 25 May, 2023"), Some(evening));
        let noon = 19_502 * DAY_MS + 12 * 3_600_000;
        assert_eq!(parse("12:00 pm on 25 May, 2023"), Some(noon));
        for text in [
            "",
            "2023/13/01 (Thu) 20:21",
            "yesterday",
            "8:21 xm on 25 May, 2023",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

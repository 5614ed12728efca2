//! Amounts with their units in a statement, and how those of two statements relate.

use foremind_types::decimal;

use super::*;

/// A number with what it counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    /// In thousandths of the base unit.
    pub(super) value: i64,
    pub(super) unit: Unit,
    /// The unit as it was written: amounts in two units are equal when they are nearly so.
    pub(super) written: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Mass,
    Length,
    Area,
    Time,
    Data,
    Percent,
    Celsius,
    Money(&'static str),
    /// An hour of the day, as written.
    Clock,
    /// A day of a month or a year.
    Date,
    /// Whatever word follows.
    Of(Box<str>),
    Plain,
}

/// Unit, dimension, thousandths of the base unit in one.
pub(super) const UNITS: &[(&[&str], Unit, f64)] = &[
    (
        &["kg", "kilo", "kilos", "kilogram", "kilograms"],
        Unit::Mass,
        1e6,
    ),
    (&["g", "gram", "grams", "gramm"], Unit::Mass, 1e3),
    (&["mg", "milligram", "milligrams"], Unit::Mass, 1.0),
    (&["mcg", "µg", "microgram", "micrograms"], Unit::Mass, 1e-3),
    (&["lb", "lbs", "pound", "pounds"], Unit::Mass, 453_592.37),
    (&["stone"], Unit::Mass, 6_350_293.0),
    (
        &["km", "kilometre", "kilometres", "kilometer", "kilometers"],
        Unit::Length,
        1e6,
    ),
    (
        &["m", "metre", "metres", "meter", "meters"],
        Unit::Length,
        1e3,
    ),
    (
        &["cm", "centimetre", "centimetres", "centimeters"],
        Unit::Length,
        10.0,
    ),
    (&["mile", "miles"], Unit::Length, 1_609_344.0),
    (&["foot", "feet", "ft"], Unit::Length, 304.8),
    (&["inch", "inches"], Unit::Length, 25.4),
    (&["ms", "millisecond", "milliseconds"], Unit::Time, 1.0),
    (&["second", "seconds", "sec"], Unit::Time, 1e3),
    (
        &["minute", "minutes", "min", "minuten", "minutos", "دقيقة"],
        Unit::Time,
        6e4,
    ),
    (
        &[
            "hour", "hours", "stunde", "stunden", "hora", "horas", "heure", "heures", "ساعة",
        ],
        Unit::Time,
        3.6e6,
    ),
    (
        &["day", "days", "tag", "tage", "dias", "jours"],
        Unit::Time,
        8.64e7,
    ),
    (
        &["week", "weeks", "weeks'", "wochen", "semanas"],
        Unit::Time,
        6.048e8,
    ),
    (
        &["month", "months", "monate", "meses", "mois"],
        Unit::Time,
        2.63e9,
    ),
    (&["year", "years"], Unit::Time, 3.156e10),
    (&["mb", "megabyte", "megabytes"], Unit::Data, 1e3),
    (&["gb", "gigabyte", "gigabytes"], Unit::Data, 1e6),
    (&["tb", "terabyte", "terabytes"], Unit::Data, 1e9),
    (&["percent", "prozent", "por ciento"], Unit::Percent, 1e3),
    (&["euro", "euros", "eur"], Unit::Money("eur"), 1e3),
    (&["dollar", "dollars", "usd"], Unit::Money("usd"), 1e3),
    (
        &["franc", "francs", "chf", "franken"],
        Unit::Money("chf"),
        1e3,
    ),
    (&["pound sterling", "gbp", "quid"], Unit::Money("gbp"), 1e3),
    (&["yen", "jpy"], Unit::Money("jpy"), 1e3),
    (&["celsius"], Unit::Celsius, 1e3),
];

pub(super) const NUMBER_WORDS: &[(&str, f64)] = &[
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("eleven", 11.0),
    ("twelve", 12.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fifty", 50.0),
    ("hundred", 100.0),
    ("half", 0.5),
    ("single", 1.0),
    ("twice", 2.0),
    ("once", 1.0),
    ("noon", 12.0),
    ("midnight", 0.0),
];

pub(super) fn quantities(text: &str, words: &Words, count: usize) -> Vec<Quantity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < count {
        let word = words.folded(at);
        let start = at;
        let digits = word.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let mut written = String::new();
        let (number, glued): (Option<f64>, &str) = if digits {
            // "1,240", "0.5", "5.7": the parts touch in the text.
            written.push_str(word);
            while at + 1 < count {
                let gap = words.word(at).at.1 as usize..words.word(at + 1).at.0 as usize;
                let joint = text.get(gap).unwrap_or_default();
                let next = words.folded(at + 1);
                if !matches!(joint, "." | ",")
                    || !next.bytes().next().is_some_and(|b| b.is_ascii_digit())
                {
                    break;
                }
                written.push_str(joint);
                written.push_str(next);
                at += 1;
            }
            parse_number(&written)
        } else {
            (
                NUMBER_WORDS
                    .iter()
                    .find(|(name, _)| *name == word)
                    .map(|(_, n)| *n),
                "",
            )
        };
        at += 1;
        let Some(mut number) = number else { continue };
        let unit_word = if glued.is_empty() {
            words.folded(at)
        } else {
            glued
        };
        if !digits
            && word != "half"
            && unit_word == "and"
            && words.folded(at + 1) == "a"
            && words.folded(at + 2) == "half"
        {
            number += 0.5;
            at += 3;
        }
        let unit_word = if glued.is_empty() {
            words.folded(at)
        } else {
            glued
        };
        let unit_word = match unit_word {
            "a" | "an" if word == "half" => words.folded(at + 1),
            w => w,
        };
        let quantity = |value: f64, unit: Unit| Quantity {
            value: value.round() as i64,
            unit,
            written: unit_word.strip_suffix('s').unwrap_or(unit_word).into(),
        };
        let before = if start > 0 {
            words.folded(start - 1)
        } else {
            ""
        };
        let found_unit = UNITS
            .iter()
            .find(|(names, _, _)| names.contains(&unit_word));
        let square = unit_word == "square";
        found.push(if square {
            let factor = if words.folded(at + 1).starts_with("f") {
                92.9
            } else {
                1e3
            };
            quantity(number * factor, Unit::Area)
        } else if glued == "k" {
            let unit = UNITS
                .iter()
                .find(|(names, _, _)| names.contains(&words.folded(at)));
            quantity(number * 1e6, unit.map_or(Unit::Plain, |u| u.1.clone()))
        } else if let Some((_, unit, factor)) = found_unit {
            quantity(number * factor, unit.clone())
        } else if unit_word == "fahrenheit" {
            quantity((number - 32.0) / 1.8 * 1e3, Unit::Celsius)
        } else if MONTHS.contains(&unit_word)
            || MONTHS.contains(&before)
            || ((1900.0..2100.0).contains(&number) && digits && glued.is_empty())
        {
            quantity(number * 1e3, Unit::Date)
        } else if matches!(before, "at" | "to" | "past" | "until") && number <= 24.0 {
            quantity(number * 1e3, Unit::Clock)
        } else if unit_word.is_empty() || unit_word.chars().all(|c| !c.is_alphabetic()) {
            quantity(number * 1e3, Unit::Plain)
        } else {
            quantity(number * 1e3, Unit::Of(stem(unit_word)))
        });
    }
    found
}

/// The number at the beginning of a word and the letters glued to it: "12k", "100mg". A comma or point before three last
/// digits groups thousands.
pub(super) fn parse_number(written: &str) -> (Option<f64>, &str) {
    let end = written
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .unwrap_or(written.len());
    let (number, glued) = written.split_at(end);
    let parts: Vec<&str> = number.split([',', '.']).collect();
    let grouped = parts.len() > 1 && parts[1..].iter().all(|p| p.len() == 3) && parts[0] != "0";
    let plain = if grouped {
        parts.concat()
    } else {
        number.replace(',', ".")
    };
    (decimal(&plain).filter(|n| *n < 1e12), glued)
}

/// How the quantities of two statements relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts {
    /// One of them has none, or they count different things.
    Apart,
    /// All that can be compared are equal.
    Equal,
    /// At least one differs.
    Differ,
}

pub(super) fn amounts(earlier: &Facts, later: &Facts) -> Amounts {
    let mut result = Amounts::Apart;
    for one in &later.quantities {
        let mut like = earlier
            .quantities
            .iter()
            .filter(|q| q.unit == one.unit)
            .peekable();
        if like.peek().is_none() {
            continue;
        }
        let equal = like.any(|q| {
            let near = (q.value - one.value).abs() * 50 <= q.value.abs().max(one.value.abs());
            q.value == one.value || (near && q.written != one.written)
        });
        match (equal, result) {
            (false, _) => return Amounts::Differ,
            (true, _) => result = Amounts::Equal,
        }
    }
    result
}

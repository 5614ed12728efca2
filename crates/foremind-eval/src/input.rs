//! Rows of JSON lines, and what can be wrong with them.

use std::fmt;
use std::fs;
use std::path::Path;

use foremind_router::HeadError;
use foremind_types::Error;
use serde_json::Value;

/// Why nothing was measured. One line each.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The command line.
    Usage(String),
    /// A file or a row of it.
    Input(String),
    /// The memory refused what it should take, or the tokenizer's tables are broken.
    Internal(String),
}

impl Problem {
    /// 2 where the caller can help it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Input(_) => 2,
            Self::Internal(_) => 1,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(text) | Self::Input(text) | Self::Internal(text)) = self;
        f.write_str(text)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Internal(format!("the memory refuses: {error}"))
    }
}

impl From<HeadError> for Problem {
    fn from(error: HeadError) -> Self {
        Self::Input(error.to_string())
    }
}

/// One row, which knows where it stands.
pub(crate) struct Row {
    value: Value,
    place: String,
}

impl Row {
    /// A text that has to be there and not empty.
    ///
    /// # Errors
    /// [`Problem::Input`] with the row's place.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Problem> {
        self.optional(name).ok_or_else(|| {
            Problem::Input(format!(
                "{}: bad row: `{name}` is no text or missing",
                self.place
            ))
        })
    }

    /// A field as it stands.
    pub(crate) fn json(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    /// A text that may be absent, null or empty.
    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        self.value[name].as_str().filter(|text| !text.is_empty())
    }

    /// A number that has to be there.
    ///
    /// # Errors
    /// [`Problem::Input`] with the row's place.
    pub(crate) fn number(&self, name: &str) -> Result<i64, Problem> {
        self.value[name].as_i64().ok_or_else(|| {
            Problem::Input(format!(
                "{}: bad row: `{name}` is no whole number or missing",
                self.place
            ))
        })
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value[name].as_bool().unwrap_or(false)
    }

    /// A list of texts; absent is empty.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        let list = self.value[name].as_array();
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// A list of anything; absent is empty.
    pub(crate) fn values(&self, name: &str) -> &[Value] {
        self.value[name].as_array().map_or(&[], Vec::as_slice)
    }

    /// A text or a number as text: ids are either.
    ///
    /// # Errors
    /// [`Problem::Input`] with the row's place.
    pub(crate) fn id(&self, name: &str) -> Result<String, Problem> {
        match &self.value[name] {
            Value::Number(number) => Ok(number.to_string()),
            _ => self.text(name).map(str::to_owned),
        }
    }

    /// An error about this row.
    pub(crate) fn problem(&self, what: &str) -> Problem {
        Problem::Input(format!("{}: bad row: {what}", self.place))
    }
}

/// All rows of a file; empty lines are skipped.
///
/// # Errors
/// [`Problem::Input`] when the file cannot be read, holds no row, or a line is no JSON object.
pub(crate) fn rows(path: &Path) -> Result<Vec<Row>, Problem> {
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| Problem::Input(format!("{shown}: {error}")))?;
    let rows = if text.trim_start().starts_with('[') {
        whole(&text, &shown.to_string())?
    } else {
        parse(&text, &shown.to_string())?
    };
    if rows.is_empty() {
        return Err(Problem::Input(format!("{shown}: no rows")));
    }
    Ok(rows)
}

/// A file that is one JSON list.
///
/// # Errors
/// [`Problem::Input`] when the file cannot be read, is no JSON list, or holds nothing.
pub(crate) fn list(path: &Path) -> Result<Vec<Value>, Problem> {
    let shown = path.display();
    let problem = |what: &dyn fmt::Display| Problem::Input(format!("{shown}: {what}"));
    let text = fs::read_to_string(path).map_err(|error| problem(&error))?;
    match serde_json::from_str(&text) {
        Ok(Value::Array(rows)) if !rows.is_empty() => Ok(rows),
        Ok(Value::Array(_)) => Err(problem(&"no rows")),
        Ok(_) => Err(problem(&"no JSON list")),
        Err(error) => Err(problem(&error)),
    }
}

/// Rows of one JSON list; each is named by its number, from 1.
fn whole(text: &str, name: &str) -> Result<Vec<Row>, Problem> {
    let values: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| Problem::Input(format!("{name}:{}: bad row: {error}", error.line())))?;
    let row = |(number, value): (usize, Value)| {
        let place = format!("{name}, row {number}");
        match value.is_object() {
            true => Ok(Row { value, place }),
            false => Err(Problem::Input(format!("{place}: bad row: no JSON object"))),
        }
    };
    (1..).zip(values).map(row).collect()
}

fn parse(text: &str, name: &str) -> Result<Vec<Row>, Problem> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            let place = format!("{name}:{}", at + 1);
            match serde_json::from_str::<Value>(line) {
                Ok(value) if value.is_object() => Ok(Row { value, place }),
                Ok(_) => Err(Problem::Input(format!("{place}: bad row: no JSON object"))),
                Err(error) => Err(Problem::Input(format!("{place}: bad row: {error}"))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        for (text, wanted) in [
            ("{}\n\n{\"a\":", "f:3: bad row"),
            ("[1]", "f:1: bad row: no JSON object"),
        ] {
            let problem = parse(text, "f").err().unwrap();
            assert!(problem.to_string().starts_with(wanted), "{problem}");
            assert_eq!(problem.exit_code(), 2);
        }
        let rows = parse("{\"id\": 7, \"text\": \"\"}", "f").unwrap();
        assert_eq!(rows[0].id("id").unwrap(), "7");
        assert!(
            rows[0]
                .text("text")
                .unwrap_err()
                .to_string()
                .starts_with("f:1:")
        );
    }

    #[test]
    fn a_missing_file_ends_with_code_2_and_its_name() {
        let problem = rows(Path::new("no/such/file.jsonl")).err().unwrap();
        assert_eq!(problem.exit_code(), 2);
        assert!(problem.to_string().contains("no/such/file.jsonl"));
    }
}

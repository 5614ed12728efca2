//! The command line.

use std::path::PathBuf;

use crate::input::Problem;

const SUITES: &str = "routing, inmind, indirect, supersession, longmemeval, locomo, guard";
/// Budget of suites that measure what is found, not what finds room: twelve items of a turn each.
const RETRIEVAL_TOKENS: u32 = 4_096;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Labelled statements.
    Routing,
    /// The tasks of InMind: a fact, and a question that it bears on.
    InMind,
    /// Our own tasks of the same kind.
    Indirect,
    /// Scenarios in which facts change.
    Supersession,
    /// Questions about sessions of the past, among sessions of others.
    LongMemEval,
    /// Questions about long conversations of two people.
    LoCoMo,
    /// Secrets, personal data and instructions, and texts that look like them.
    Guard,
}

/// Whose rows the guard is measured on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GuardFormat {
    /// `text`, `expect`, `also_ok`, `redacted_must_not_contain`.
    #[default]
    Foremind,
    /// `content`, `label`: `clean` or anything else.
    Memshield,
    /// `prompt`, all of them harmless.
    NotInject,
    /// `text`, `label`: `malicious` or `benign`.
    Bastion,
    /// `full_text` and `spans`.
    Presidio,
    /// `text` with `label` `profile`, or `user_message`: what must not be held back.
    Routing,
}

impl GuardFormat {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "foremind" => Self::Foremind,
            "memshield" => Self::Memshield,
            "notinject" => Self::NotInject,
            "bastion" => Self::Bastion,
            "presidio" => Self::Presidio,
            "routing" => Self::Routing,
            _ => return None,
        })
    }
}

/// One parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) suite: Suite,
    /// `--rows` of routing and indirect, `--tasks` of inmind, `--data` of longmemeval and locomo.
    pub(crate) rows: PathBuf,
    /// Of the guard: the folder of the evaluation data, all files of which are read that concern it.
    pub(crate) data: Option<PathBuf>,
    pub(crate) format: GuardFormat,
    pub(crate) background: Option<PathBuf>,
    pub(crate) background_labels: Option<PathBuf>,
    /// All facts in one memory, instead of a copy of the memory for each.
    pub(crate) pool: bool,
    /// Only what was decided when the fact was written: the profile, without what a query adds to it.
    pub(crate) no_join: bool,
    pub(crate) budget_tokens: u32,
    /// Sessions of other questions around those with evidence.
    pub(crate) distractors: usize,
    /// A file that keeps what texts were encoded to, so that the next run need not encode them again.
    pub(crate) cache: Option<PathBuf>,
    /// The file of an n-gram head for what the lexical stage leaves open.
    pub(crate) ngrams: Option<PathBuf>,
    /// The encoder's model file, and the adapter file with the head that judges.
    pub(crate) model: Option<PathBuf>,
    pub(crate) adapter: Option<PathBuf>,
    /// Words alone, whatever heads are named.
    pub(crate) lexical: bool,
    /// Of the scenarios only those of this part.
    pub(crate) part: Option<String>,
    pub(crate) explain: bool,
    pub(crate) json: bool,
}

impl Arguments {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// [`Problem::Usage`] naming what is unknown or missing.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, Problem> {
        let mut arguments = arguments.into_iter();
        let suite = match arguments.next().as_deref() {
            Some("routing") => Suite::Routing,
            Some("inmind") => Suite::InMind,
            Some("indirect") => Suite::Indirect,
            Some("supersession") => Suite::Supersession,
            Some("longmemeval") => Suite::LongMemEval,
            Some("locomo") => Suite::LoCoMo,
            Some("guard") => Suite::Guard,
            Some(unknown) => {
                return Err(Problem::Usage(format!(
                    "unknown suite `{unknown}`; there are {SUITES}"
                )));
            }
            None => return Err(Problem::Usage(format!("name a suite: {SUITES}"))),
        };
        let mut rows = None;
        let mut parsed = Self {
            suite,
            rows: PathBuf::new(),
            data: None,
            format: GuardFormat::default(),
            background: None,
            background_labels: None,
            pool: false,
            no_join: false,
            budget_tokens: match suite {
                Suite::LongMemEval | Suite::LoCoMo => RETRIEVAL_TOKENS,
                _ => 512,
            },
            distractors: 40,
            cache: None,
            ngrams: None,
            model: None,
            adapter: None,
            lexical: false,
            part: None,
            explain: false,
            json: false,
        };
        let wanted = match suite {
            Suite::InMind => "--tasks",
            Suite::LongMemEval | Suite::LoCoMo => "--data",
            Suite::Routing | Suite::Indirect | Suite::Supersession | Suite::Guard => "--rows",
        };
        while let Some(flag) = arguments.next() {
            let traced = matches!(suite, Suite::InMind | Suite::Indirect);
            let changing = suite == Suite::Supersession;
            let found = matches!(suite, Suite::LongMemEval | Suite::LoCoMo);
            let guarding = suite == Suite::Guard;
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| Problem::Usage(format!("{flag} needs a value")))
            };
            match flag.as_str() {
                "--json" => parsed.json = true,
                "--explain" => parsed.explain = true,
                name if name == wanted => rows = Some(PathBuf::from(value()?)),
                "--lexical" => parsed.lexical = true,
                "--ngrams" => parsed.ngrams = Some(value()?.into()),
                "--model" => parsed.model = Some(value()?.into()),
                "--adapter" => parsed.adapter = Some(value()?.into()),
                "--background" if traced => parsed.background = Some(value()?.into()),
                "--background-labels" if traced => parsed.background_labels = Some(value()?.into()),
                "--no-join" if traced => parsed.no_join = true,
                "--mode" if traced => {
                    parsed.pool = match value()?.as_str() {
                        "trace" => false,
                        "pool" => true,
                        unknown => {
                            return Err(Problem::Usage(format!(
                                "unknown mode `{unknown}`; there are trace, pool"
                            )));
                        }
                    }
                }
                "--data" if guarding => parsed.data = Some(value()?.into()),
                "--format" if guarding => {
                    let name = value()?;
                    parsed.format = GuardFormat::parse(&name).ok_or_else(|| {
                        Problem::Usage(format!(
                            "unknown format `{name}`; there are foremind, memshield, notinject, bastion, presidio, routing"
                        ))
                    })?;
                }
                "--part" if changing || guarding => parsed.part = Some(value()?),
                "--cache" => parsed.cache = Some(value()?.into()),
                "--distractors" if suite == Suite::LongMemEval => {
                    parsed.distractors = number(&flag, &value()?)?;
                }
                "--budget-tokens" if traced || changing || found => {
                    let tokens: u32 = number(&flag, &value()?)?;
                    if tokens == 0 {
                        return Err(Problem::Usage("--budget-tokens: `0` is too few".to_owned()));
                    }
                    parsed.budget_tokens = tokens;
                }
                unknown => return Err(Problem::Usage(format!("unknown argument `{unknown}`"))),
            }
        }
        if parsed.data.is_none() {
            parsed.rows =
                rows.ok_or_else(|| Problem::Usage(format!("{wanted} FILE is missing")))?;
        }
        if matches!(suite, Suite::InMind | Suite::Indirect) && parsed.background.is_none() {
            return Err(Problem::Usage("--background FILE is missing".to_owned()));
        }
        Ok(parsed)
    }
}

fn number<N: core::str::FromStr>(flag: &str, text: &str) -> Result<N, Problem> {
    text.parse()
        .map_err(|_| Problem::Usage(format!("{flag}: `{text}` is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Arguments, Problem> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn documented_command_lines_are_understood() {
        let routing = parsed("routing --rows r.jsonl --json").unwrap();
        assert_eq!(
            (routing.suite, routing.json),
            (Suite::Routing, true),
            "{routing:?}"
        );
        let inmind = parsed(
            "inmind --tasks t --background b --background-labels l --mode pool --no-join --budget-tokens 300",
        )
        .unwrap();
        assert!(inmind.pool && inmind.no_join && inmind.budget_tokens == 300);
        assert_eq!(inmind.background_labels, Some("l".into()));
        assert!(parsed("indirect --rows r --background b").is_ok());
        let changing =
            parsed("supersession --rows r --model m --adapter a --part test --json").unwrap();
        assert_eq!(changing.model, Some("m".into()));
        assert_eq!(changing.part.as_deref(), Some("test"));
        let found = parsed("longmemeval --data d --distractors 20 --cache c --json").unwrap();
        assert_eq!((found.distractors, found.cache), (20, Some("c".into())));
        assert_eq!(found.budget_tokens, RETRIEVAL_TOKENS);
        assert!(parsed("locomo --data d").is_ok());
        let guard = parsed("guard --rows r --format presidio --json").unwrap();
        assert_eq!(
            (guard.suite, guard.format),
            (Suite::Guard, GuardFormat::Presidio)
        );
        assert_eq!(parsed("guard --data d").unwrap().data, Some("d".into()));
    }

    #[test]
    fn anything_else_names_the_culprit_and_ends_with_code_2() {
        for (line, culprit) in [
            ("", "suite"),
            ("speed", "speed"),
            ("routing", "--rows"),
            ("guard --rows r --format x", "`x`"),
            ("routing --rows", "--rows"),
            ("routing --rows r --background b", "--background"),
            ("inmind --tasks t", "--background"),
            ("inmind --tasks t --background b --mode x", "`x`"),
            ("indirect --rows r --background b --budget-tokens 0", "`0`"),
            ("longmemeval --rows r", "--rows"),
            ("longmemeval --data d --distractors x", "`x`"),
            ("locomo --data d --distractors 1", "--distractors"),
        ] {
            let problem = parsed(line).unwrap_err();
            assert_eq!(problem.exit_code(), 2, "{line}");
            assert!(problem.to_string().contains(culprit), "{line}: {problem}");
        }
    }
}

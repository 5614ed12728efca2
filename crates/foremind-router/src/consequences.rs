//! What follows from a domain: grade, severity, time to live, and the questions it may affect.

use foremind_types::{Domain, Grade, Severity};

use crate::data::{LineError, each_line, table_file};
use foremind_types::data::File;

/// The data file.
pub(crate) const FILE: File = table_file!("domains.tsv");

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consequence {
    domain: Domain,
    pub(crate) grade: Grade,
    pub(crate) severity: Severity,
    /// Only an explicit contradiction ends it.
    pub(crate) permanent: bool,
    pub(crate) affects: Vec<Domain>,
}

/// The consequence table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consequences(Vec<Consequence>);

impl Consequences {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(file: &'static str, text: &'static str) -> (Self, Vec<LineError>) {
        let mut rows = Vec::new();
        let errors = each_line(file, text, &mut |line| {
            rows.push(row(line)?);
            Ok(())
        });
        (Self(rows), errors)
    }

    /// The row of a domain.
    pub(crate) fn of(&self, domain: Domain) -> Option<&Consequence> {
        self.0.iter().find(|row| row.domain == domain)
    }
}

fn row(line: &str) -> Result<Consequence, &'static str> {
    let mut fields = line.split('\t').map(str::trim);
    let mut next = || {
        fields
            .next()
            .ok_or("expected five fields, separated by tabs")
    };
    let (domain, grade, severity, ttl, affects) = (next()?, next()?, next()?, next()?, next()?);
    Ok(Consequence {
        domain: Domain::parse(domain).ok_or("unknown domain")?,
        grade: Grade::parse(grade).ok_or("unknown grade")?,
        severity: Severity::parse(severity).ok_or("unknown severity")?,
        permanent: match ttl {
            "permanent" => true,
            "until-changed" => false,
            _ => return Err("unknown time to live"),
        },
        affects: affects
            .split(',')
            .map(|name| Domain::parse(name.trim()).ok_or("unknown affected domain"))
            .collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_has_one_row() {
        let (table, errors) = Consequences::read(FILE.name, FILE.text());
        assert!(errors.is_empty(), "{}", errors[0]);
        for domain in Domain::ALL {
            assert_eq!(
                table.0.iter().filter(|r| r.domain == *domain).count(),
                1,
                "{domain:?}"
            );
        }
    }

    #[test]
    fn an_error_names_file_and_line() {
        let (_, errors) = Consequences::read("y.tsv", "#\nfood\tmodifier\tmild\tforever\tfood");
        assert_eq!(errors[0].to_string(), "y.tsv:2: unknown time to live");
    }
}

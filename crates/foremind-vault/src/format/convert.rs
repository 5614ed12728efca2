//! From the vocabulary to the frozen structs of the current format.

use foremind_types::small::SmallMap;

use foremind_types::{Change, Entry, Name, Record, Revision, Route, Scope, Ttl};

use super::v1::{self, Code};
use crate::{Heard, VaultError};

/// Plaintext of a run of entries.
///
/// # Errors
/// [`VaultError::Unstorable`] for a change that this format has no form for.
pub(crate) fn encode_entries<'e>(
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Result<Vec<u8>, VaultError> {
    let mut strings = Strings::default();
    let entries = entries
        .into_iter()
        .map(|entry| {
            Ok(v1::Entry {
                writer: entry.writer.0,
                counter: entry.counter,
                lamport: entry.lamport,
                at_ms: entry.at_ms,
                changes: entry
                    .changes
                    .iter()
                    .map(|change| store_change(change, &mut strings))
                    .collect::<Result<_, _>>()?,
            })
        })
        .collect::<Result<_, VaultError>>()?;
    let run = v1::Entries {
        strings: strings.list,
        entries,
    };
    postcard::to_allocvec(&run).map_err(|_| VaultError::Unstorable { what: "an entry" })
}

/// Plaintext of the profile value.
///
/// # Errors
/// [`VaultError::Unstorable`], as for entries.
pub(crate) fn encode_profile(records: &[Heard]) -> Result<Vec<u8>, VaultError> {
    let mut strings = Strings::default();
    let records = records
        .iter()
        .map(|heard| {
            Ok(v1::Heard {
                record: store_record(&heard.record, &mut strings)?,
                heard_ms: heard.heard_ms,
            })
        })
        .collect::<Result<_, VaultError>>()?;
    let profile = v1::Profile {
        strings: strings.list,
        records,
    };
    postcard::to_allocvec(&profile).map_err(|_| VaultError::Unstorable {
        what: "the profile",
    })
}

/// Strings that repeat (names, models, signals), each stored once in a run.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    positions: SmallMap<String, u32>,
}

impl Strings {
    fn position(&mut self, text: &str) -> Result<u32, VaultError> {
        if let Some(position) = self.positions.get(text) {
            return Ok(*position);
        }
        let position = u32::try_from(self.list.len()).map_err(|_| VaultError::Unstorable {
            what: "more than 2^32 strings",
        })?;
        self.list.push(text.to_owned());
        self.positions.insert(text.to_owned(), position);
        Ok(position)
    }

    fn name(&mut self, name: Option<&Name>) -> Result<Option<u32>, VaultError> {
        name.map(|name| self.position(name.as_str())).transpose()
    }
}

fn store_change(change: &Change, strings: &mut Strings) -> Result<v1::Change, VaultError> {
    Ok(match change {
        Change::Add(record) => v1::Change::Add(Box::new(store_record(record, strings)?)),
        Change::Revise { id, revision } => {
            let id = id.to_bytes();
            match revision {
                Revision::Status {
                    status,
                    valid_to_ms,
                } => v1::Change::Status {
                    id,
                    status: status.code(),
                    valid_to_ms: *valid_to_ms,
                },
                Revision::Route(route) => v1::Change::Route {
                    id,
                    route: store_route(route, strings)?,
                },
                Revision::Confirmed { at_ms } => v1::Change::Confirmed { id, at_ms: *at_ms },
                Revision::Told { at_ms, proof_count } => v1::Change::Told {
                    id,
                    at_ms: *at_ms,
                    proof_count: *proof_count,
                },
                _ => return Err(VaultError::Unstorable { what: "a revision" }),
            }
        }
        Change::Embed { id, embedding } => v1::Change::Embed {
            id: id.to_bytes(),
            model_id: strings.position(&embedding.model_id.0)?,
            head_id: strings.position(&embedding.head_id.0)?,
            scale: embedding.scale,
            vector: embedding.vector.clone(),
            features: embedding.features.clone(),
        },
        Change::Turn {
            scope,
            thread,
            turn,
            records,
        } => v1::Change::Turn {
            scope: store_scope(scope, strings)?,
            thread: strings.position(thread.as_str())?,
            turn: strings.position(turn.as_str())?,
            records: records.iter().map(|id| id.to_bytes()).collect(),
        },
        Change::Erase { id, at_ms } => v1::Change::Erase {
            id: id.to_bytes(),
            at_ms: *at_ms,
        },
        Change::Keyed { kind, bytes } => v1::Change::Keyed {
            kind: *kind,
            bytes: bytes.clone(),
        },
        _ => return Err(VaultError::Unstorable { what: "a change" }),
    })
}

fn store_scope(scope: &Scope, strings: &mut Strings) -> Result<v1::Scope, VaultError> {
    Ok(v1::Scope {
        user: strings.position(scope.user.as_str())?,
        project: strings.name(scope.project.as_ref())?,
        thread: strings.name(scope.thread.as_ref())?,
        agent: strings.name(scope.agent.as_ref())?,
    })
}

fn store_record(record: &Record, strings: &mut Strings) -> Result<v1::Record, VaultError> {
    Ok(v1::Record {
        id: record.id.to_bytes(),
        scope: store_scope(&record.scope, strings)?,
        text: record.text.clone(),
        layer: record.layer.code(),
        route: store_route(&record.route, strings)?,
        subject: record.subject.code(),
        attribute: record.attribute.clone(),
        value: record.value.clone(),
        told_ms: record.times.told_ms,
        utc_offset_min: record.times.utc_offset_min,
        valid_from_ms: record.times.valid_from_ms,
        valid_to_ms: record.times.valid_to_ms,
        status: record.status.code(),
        supersedes: record
            .supersedes
            .iter()
            .map(|link| v1::Supersedes {
                id: link.id.to_bytes(),
                kind: link.kind.code(),
                why: link.why.clone(),
            })
            .collect(),
        evidence: record
            .evidence
            .iter()
            .map(|link| v1::Evidence {
                id: link.id.to_bytes(),
                quote: link.quote.clone(),
            })
            .collect(),
        role: record.provenance.role.code(),
        thread: strings.name(record.provenance.thread.as_ref())?,
        turn: strings.name(record.provenance.turn.as_ref())?,
        statement: record.provenance.statement,
        confirmed_ms: record.confirmed_ms,
        proof_count: record.proof_count,
    })
}

fn store_route(route: &Route, strings: &mut Strings) -> Result<v1::Route, VaultError> {
    Ok(v1::Route {
        grade: route.grade.code(),
        tier: route.tier.code(),
        priority: route.priority,
        severity: route.severity.code(),
        domain: route.domain.code(),
        affects: route.affects.iter().map(|domain| domain.code()).collect(),
        ttl: match route.ttl {
            Ttl::Permanent => v1::Ttl::Permanent,
            Ttl::UntilChanged => v1::Ttl::UntilChanged,
            Ttl::Dated { until_ms } => v1::Ttl::Dated { until_ms },
            Ttl::Session { until_ms } => v1::Ttl::Session { until_ms },
        },
        score: route.score,
        reasons: route
            .reasons
            .iter()
            .map(|reason| {
                Ok(v1::Reason {
                    signal: strings.position(&reason.signal)?,
                    matched: reason.matched.clone(),
                    weight: reason.weight,
                })
            })
            .collect::<Result<_, VaultError>>()?,
        stage: route.stage.code(),
        judgement: route.judgement.code(),
    })
}

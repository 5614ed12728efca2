//! Reading by what serde derives: the oracle of [`super::read`].

use foremind_types::{
    Change, Embedding, Entry, Evidence, HeadId, ModelId, Name, Provenance, Reason, Record,
    RecordId, Revision, Route, Scope, Supersedes, Times, Ttl, WriterId,
};

use super::read::Read;
use super::v1::{self, Code};
use crate::Heard;

pub(crate) fn decode_entries(plain: &[u8]) -> Read<Vec<Entry>> {
    let (run, rest): (v1::Entries, _) =
        postcard::take_from_bytes(plain).map_err(|_| "run of entries")?;
    if !rest.is_empty() {
        return Err("run of entries: bytes left over");
    }
    let strings = &run.strings;
    run.entries
        .into_iter()
        .map(|entry| {
            Ok(Entry {
                writer: WriterId(entry.writer),
                counter: entry.counter,
                lamport: entry.lamport,
                at_ms: entry.at_ms,
                changes: entry
                    .changes
                    .into_iter()
                    .map(|change| read_change(change, strings))
                    .collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

pub(crate) fn decode_profile(plain: &[u8]) -> Read<Vec<Heard>> {
    let (profile, rest): (v1::Profile, _) =
        postcard::take_from_bytes(plain).map_err(|_| "profile")?;
    if !rest.is_empty() {
        return Err("profile: bytes left over");
    }
    profile
        .records
        .into_iter()
        .map(|heard| {
            Ok(Heard {
                record: read_record(heard.record, &profile.strings)?,
                heard_ms: heard.heard_ms,
            })
        })
        .collect()
}

pub(crate) fn decode_manifest(plain: &[u8]) -> Read<v1::Manifest> {
    let (manifest, rest) = postcard::take_from_bytes(plain).map_err(|_| "manifest")?;
    if !rest.is_empty() {
        return Err("manifest: bytes left over");
    }
    Ok(manifest)
}

fn read_change(change: v1::Change, strings: &[String]) -> Read<Change> {
    let revise = |id, revision| Change::Revise {
        id: RecordId::from_bytes(id),
        revision,
    };
    Ok(match change {
        v1::Change::Add(record) => Change::Add(Box::new(read_record(*record, strings)?)),
        v1::Change::Status {
            id,
            status,
            valid_to_ms,
        } => revise(
            id,
            Revision::Status {
                status: word(status)?,
                valid_to_ms,
            },
        ),
        v1::Change::Route { id, route } => {
            revise(id, Revision::Route(Box::new(read_route(route, strings)?)))
        }
        v1::Change::Confirmed { id, at_ms } => revise(id, Revision::Confirmed { at_ms }),
        v1::Change::Told {
            id,
            at_ms,
            proof_count,
        } => revise(id, Revision::Told { at_ms, proof_count }),
        v1::Change::Embed {
            id,
            model_id,
            head_id,
            scale,
            vector,
            features,
        } => Change::Embed {
            id: RecordId::from_bytes(id),
            embedding: Embedding {
                model_id: ModelId(string(model_id, strings)?.to_owned()),
                head_id: HeadId(string(head_id, strings)?.to_owned()),
                vector,
                scale,
                features,
            },
        },
        v1::Change::Turn {
            scope,
            thread,
            turn,
            records,
        } => Change::Turn {
            scope: read_scope(&scope, strings)?,
            thread: name(thread, strings)?,
            turn: name(turn, strings)?,
            records: records.into_iter().map(RecordId::from_bytes).collect(),
        },
        v1::Change::Erase { id, at_ms } => Change::Erase {
            id: RecordId::from_bytes(id),
            at_ms,
        },
        v1::Change::Keyed { kind, bytes } => Change::Keyed { kind, bytes },
    })
}

fn word<T: Code>(code: u8) -> Read<T> {
    T::from_code(code).ok_or("word of the vocabulary")
}

fn string(position: u32, strings: &[String]) -> Read<&str> {
    usize::try_from(position)
        .ok()
        .and_then(|position| strings.get(position))
        .map(String::as_str)
        .ok_or("string position")
}

fn name(position: u32, strings: &[String]) -> Read<Name> {
    Name::new(string(position, strings)?).map_err(|_| "name")
}

fn optional_name(position: Option<u32>, strings: &[String]) -> Read<Option<Name>> {
    position.map(|position| name(position, strings)).transpose()
}

fn read_scope(scope: &v1::Scope, strings: &[String]) -> Read<Scope> {
    Ok(Scope {
        user: name(scope.user, strings)?,
        project: optional_name(scope.project, strings)?,
        thread: optional_name(scope.thread, strings)?,
        agent: optional_name(scope.agent, strings)?,
    })
}

fn read_record(record: v1::Record, strings: &[String]) -> Read<Record> {
    Ok(Record {
        id: RecordId::from_bytes(record.id),
        scope: read_scope(&record.scope, strings)?,
        text: record.text,
        layer: word(record.layer)?,
        route: read_route(record.route, strings)?,
        subject: word(record.subject)?,
        attribute: record.attribute,
        value: record.value,
        times: Times {
            told_ms: record.told_ms,
            utc_offset_min: record.utc_offset_min,
            valid_from_ms: record.valid_from_ms,
            valid_to_ms: record.valid_to_ms,
        },
        status: word(record.status)?,
        supersedes: record
            .supersedes
            .into_iter()
            .map(|link| {
                Ok(Supersedes {
                    id: RecordId::from_bytes(link.id),
                    kind: word(link.kind)?,
                    why: link.why,
                })
            })
            .collect::<Read<_>>()?,
        evidence: record
            .evidence
            .into_iter()
            .map(|link| Evidence {
                id: RecordId::from_bytes(link.id),
                quote: link.quote,
            })
            .collect(),
        provenance: Provenance {
            role: word(record.role)?,
            thread: optional_name(record.thread, strings)?,
            turn: optional_name(record.turn, strings)?,
            statement: record.statement,
        },
        confirmed_ms: record.confirmed_ms,
        proof_count: record.proof_count,
    })
}

fn read_route(route: v1::Route, strings: &[String]) -> Read<Route> {
    Ok(Route {
        grade: word(route.grade)?,
        tier: word(route.tier)?,
        priority: route.priority,
        severity: word(route.severity)?,
        domain: word(route.domain)?,
        affects: route.affects.into_iter().map(word).collect::<Read<_>>()?,
        ttl: match route.ttl {
            v1::Ttl::Permanent => Ttl::Permanent,
            v1::Ttl::UntilChanged => Ttl::UntilChanged,
            v1::Ttl::Dated { until_ms } => Ttl::Dated { until_ms },
            v1::Ttl::Session { until_ms } => Ttl::Session { until_ms },
        },
        score: route.score,
        reasons: route
            .reasons
            .into_iter()
            .map(|reason| {
                Ok(Reason {
                    signal: string(reason.signal, strings)?.to_owned(),
                    matched: reason.matched,
                    weight: reason.weight,
                })
            })
            .collect::<Read<_>>()?,
        stage: word(route.stage)?,
        judgement: word(route.judgement)?,
    })
}

//! An operation under way. A verb is planned from the state as it is; when an embedding is missing it is asked
//! for and the verb is planned again, and so it is after a conflict. Nothing of a plan outlives its commit.

use foremind_types::small::SmallMap;

use foremind_index::Work;
use foremind_types::limits::EMBED_TEXTS;
use foremind_types::{
    Ambient, Change, Embedding, EncodeFailure, ErasedCounts, Error, ErrorCode, Grade, HeadId,
    ModelId, RecordId, Revision, Tier,
};

use crate::engine::Engine;
use crate::protocol::EMBEDDING_HEAD;
use crate::read::{Asked, Filter};
use crate::recall::Time;
use crate::response::{Noted, Outcome, Rescanned};
use crate::state::TurnKey;
use crate::statements::Statement;
use crate::write::{Told, Turn};
use crate::{Reply, Request, Response, Step};

/// Units of work that a slow host does in a millisecond: a phone of some years ago, in wasm. `bench recall` measures it.
const WORK_PER_MS: u64 = 10_000;

/// An operation under way. Several may be under way on one engine.
#[derive(Debug)]
pub struct Op {
    pub(crate) request: Request,
    phase: Phase,
    pub(crate) vectors: VectorCache,
    /// The routed statements, so that planning again does not route again.
    pub(crate) statements: Option<Vec<Statement>>,
}

#[derive(Debug)]
enum Phase {
    Fresh,
    Encoding(Vec<String>),
    Committing(Answer),
    Ended,
}

/// Embeddings that the operation got so far; they outlive a conflict.
#[derive(Debug, Default)]
pub(crate) struct VectorCache {
    by_text: SmallMap<String, Encoded>,
    /// The embedder gave up: nothing more is asked.
    failed: bool,
}

/// What the encoder made of a text.
#[derive(Debug, Default)]
struct Encoded {
    embedding: Option<Embedding>,
    /// Of the head that judges.
    features: Option<Vec<f32>>,
}

impl VectorCache {
    /// The vector of a text, if it came.
    pub(crate) fn of(&self, text: &str) -> Option<&Embedding> {
        self.by_text.get(text)?.embedding.as_ref()
    }

    /// What the head that judges gave for a text, if it came.
    pub(crate) fn features(&self, text: &str) -> Option<&[f32]> {
        self.by_text.get(text)?.features.as_deref()
    }

    /// The next texts to ask for, if any of `texts` still has to be.
    pub(crate) fn missing<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Option<Vec<String>> {
        if self.failed {
            return None;
        }
        let mut wanted: Vec<String> = Vec::new();
        for text in texts {
            if wanted.len() < EMBED_TEXTS
                && !self.by_text.contains_key(text)
                && !wanted.iter().any(|w| w == text)
            {
                wanted.push(text.to_owned());
            }
        }
        (!wanted.is_empty()).then_some(wanted)
    }

    fn take(&mut self, texts: Vec<String>, rows: Vec<Vec<Embedding>>) {
        let mut rows = rows.into_iter();
        for text in texts {
            let mut row = rows.next().unwrap_or_default().into_iter();
            let embedding = row
                .next()
                .filter(|embedding| embedding.head_id.0 == EMBEDDING_HEAD)
                .filter(|embedding| foremind_index::check(embedding).is_ok());
            let features = row.next().map(|of_head| of_head.features);
            self.by_text.insert(
                text,
                Encoded {
                    embedding,
                    features,
                },
            );
        }
    }
}

/// What a verb wants.
#[expect(
    clippy::large_enum_variant,
    reason = "made once per step and matched at once"
)]
pub(crate) enum Plan {
    Encode(Vec<String>),
    Commit {
        changes: Vec<Change>,
        answer: Answer,
    },
    Done(Response),
}

/// What to answer once the changes are applied.
#[derive(Debug)]
pub(crate) enum Answer {
    Remember(Vec<(RecordId, Outcome)>),
    Ingest(Vec<(RecordId, Outcome)>),
    Update(RecordId),
    Confirm(RecordId),
    Judge(RecordId),
    Forget(ErasedCounts),
    Backfill {
        encoded: u32,
        model: Option<ModelId>,
    },
    Rescan(Rescanned),
}

impl Op {
    pub(crate) fn new(request: Request) -> Self {
        Self {
            request,
            phase: Phase::Fresh,
            vectors: VectorCache::default(),
            statements: None,
        }
    }

    pub(crate) fn step(&mut self, engine: &Engine, reply: Reply, at: &Ambient) -> Step {
        let phase = core::mem::replace(&mut self.phase, Phase::Ended);
        match (phase, reply) {
            (Phase::Ended, _) => Step::Done(Err(internal("the operation has ended"))),
            (_, Reply::Failed(error)) => Step::Done(Err(error)),
            (Phase::Fresh, Reply::Begin) | (Phase::Committing(_), Reply::Replan) => {
                self.advance(engine, at)
            }
            (Phase::Encoding(texts), Reply::Encoded(result)) => {
                match result {
                    Ok(rows) => self.vectors.take(texts, rows),
                    Err(EncodeFailure::Aborted) => {
                        let message = "the caller gave up; nothing was changed";
                        return Step::Done(Err(Error::new(ErrorCode::Aborted, message)));
                    }
                    Err(EncodeFailure::NotReady | EncodeFailure::Failed) => {
                        self.vectors.failed = true;
                    }
                }
                self.advance(engine, at)
            }
            (Phase::Committing(answer), Reply::Committed) => {
                Step::Done(respond(engine, answer, at.now_ms))
            }
            _ => Step::Done(Err(internal("the reply does not answer the last step"))),
        }
    }

    fn advance(&mut self, engine: &Engine, at: &Ambient) -> Step {
        match self.plan(engine, at) {
            Err(error) => Step::Done(Err(error)),
            Ok(Plan::Done(response)) => Step::Done(Ok(response)),
            Ok(Plan::Encode(texts)) => {
                self.phase = Phase::Encoding(texts.clone());
                let writes = !matches!(self.request, Request::Recall { .. });
                let mut heads = vec![HeadId(EMBEDDING_HEAD.to_owned())];
                heads.extend(engine.head.clone().filter(|_| writes));
                Step::Encode { texts, heads }
            }
            Ok(Plan::Commit { changes, answer }) => {
                self.phase = Phase::Committing(answer);
                Step::Commit {
                    strict: changes.iter().any(is_strict),
                    changes,
                }
            }
        }
    }
}

/// Whether a change must be durable before the caller hears of it.
fn is_strict(change: &Change) -> bool {
    match change {
        Change::Erase { .. } => true,
        Change::Add(record) => {
            record.route.tier == Tier::Profile || record.route.grade == Grade::Modifier
        }
        Change::Revise {
            revision: Revision::Route(route),
            ..
        } => route.tier == Tier::Profile,
        _ => false,
    }
}

fn respond(engine: &Engine, answer: Answer, now_ms: i64) -> Result<Response, Error> {
    let record = |id: RecordId| {
        engine
            .record_at(id, now_ms)
            .ok_or_else(|| internal("a committed record is missing"))
    };
    let noted = |outcomes: Vec<(RecordId, Outcome)>| {
        outcomes
            .into_iter()
            .map(|(id, outcome)| {
                Ok(Noted {
                    record: record(id)?,
                    outcome,
                })
            })
            .collect::<Result<Vec<Noted>, Error>>()
    };
    Ok(match answer {
        Answer::Remember(outcomes) => Response::Remember {
            records: noted(outcomes)?,
        },
        Answer::Ingest(outcomes) => Response::Ingest {
            records: noted(outcomes)?,
            repeated: false,
            ignored: None,
        },
        Answer::Update(id) => Response::Update {
            record: record(id)?,
        },
        Answer::Confirm(id) => Response::Confirm {
            record: record(id)?,
        },
        Answer::Judge(id) => Response::Judge {
            record: record(id)?,
        },
        Answer::Forget(counts) => Response::Forget {
            erased: counts.records,
            counts,
            preview: Vec::new(),
            receipt: None,
        },
        Answer::Rescan(found) => Response::Rescan(found),
        Answer::Backfill { encoded, model } => Response::Backfill {
            encoded,
            remaining: engine.state.without_vector(model.as_ref()).len() as u32,
        },
    })
}

pub(crate) fn internal(message: &str) -> Error {
    Error::new(ErrorCode::Internal, message)
}

impl Op {
    fn plan(&mut self, engine: &Engine, at: &Ambient) -> Result<Plan, Error> {
        let Self {
            request,
            vectors,
            statements,
            ..
        } = self;
        let now_ms = at.now_ms;
        let response = match request {
            Request::Remember {
                scope,
                text,
                role,
                thread,
                turn,
                tier,
            } => {
                let told = Told {
                    scope,
                    role: *role,
                    thread: thread.as_ref(),
                    turn: turn.as_ref(),
                    tier: *tier,
                };
                return engine.remember(&told, text, statements, vectors, at);
            }
            Request::Ingest {
                scope,
                thread,
                turn,
                role,
                text,
                status,
                mode,
                finding,
            } => {
                let turn = Turn {
                    told: Told {
                        scope,
                        role: *role,
                        thread: Some(thread),
                        turn: Some(turn),
                        tier: None,
                    },
                    key: TurnKey {
                        scope: scope.clone(),
                        thread: thread.clone(),
                        turn: turn.clone(),
                    },
                    status: *status,
                    mode: *mode,
                    finding: *finding,
                };
                return engine.ingest(&turn, text, statements, vectors, at);
            }
            Request::Recall {
                scope,
                query,
                budget_tokens,
                as_of_ms,
                exposure,
                audience,
                deadline_ms,
                explain,
            } => {
                let asked = Asked {
                    query,
                    budget_tokens: *budget_tokens,
                    exposure: *exposure,
                    audience: *audience,
                    work: deadline_ms.map_or(Work::unbounded(), |ms| {
                        Work::new(u64::from(ms).saturating_mul(WORK_PER_MS))
                    }),
                    explain: *explain,
                };
                return engine.recall(scope, &asked, vectors, Time::new(now_ms, *as_of_ms), at);
            }
            Request::Profile {
                scope,
                budget_tokens,
                as_of_ms,
                audience,
            } => {
                let time = Time::new(now_ms, *as_of_ms);
                Response::Profile(engine.profile(scope, *budget_tokens, *audience, time)?)
            }
            Request::Get { scope, id } => Response::Get {
                record: engine.one(scope, *id, now_ms)?,
            },
            Request::List {
                scope,
                tier,
                status,
                domain,
                limit,
                after,
            } => {
                let filter = Filter {
                    tier: *tier,
                    status: *status,
                    domain: *domain,
                    limit: *limit,
                    after: *after,
                };
                Response::List(engine.list(scope, &filter, now_ms)?)
            }
            Request::History { scope, id } => Response::History {
                records: engine.history(scope, *id, now_ms)?,
            },
            Request::Update { scope, id, tier } => return engine.update(scope, *id, *tier),
            Request::Release { scope, id } => return engine.release(scope, *id, at),
            Request::Rescan { scope, after } => return Ok(engine.rescan(scope, *after, at)),
            Request::Confirm { scope, id } => return engine.confirm(scope, *id, now_ms),
            Request::Forget {
                scope,
                target,
                preview,
            } => return engine.forget(scope, target, *preview, now_ms),
            Request::Pending { scope } => Response::Pending(engine.pending(scope, now_ms)),
            Request::Judge { scope, id, grade } => return engine.judge(scope, *id, *grade),
            Request::Stats { scope } => Response::Stats(engine.stats(scope, now_ms)),
            Request::Backfill { max, model } => {
                return engine.backfill(*max, model.as_ref(), vectors, at);
            }
            Request::Refresh {} => Response::Refresh {},
        };
        Ok(Plan::Done(response))
    }
}

//! What is answered, once all is done.

use foremind_engine::Response;
use foremind_types::{Ambient, Error, ErrorCode};

use super::{Answer, Call, End, Said, Service, unknown};
use crate::http::{HttpResponse, Kind, Problem};
use crate::wire::{
    ForgottenAnswer, GrantAnswer, ListAnswer, PromptAnswer, RememberAnswer, RemovedAnswer,
    TurnAnswer,
};

impl Service {
    /// Makes the answer of what was done.
    pub(super) fn end(&mut self, call: &mut Call, _: &Ambient) -> Result<Said, Problem> {
        let end = core::mem::take(&mut call.plan.end);
        let ran = call.plan.ran.take();
        if let End::Prompt(reason) = end {
            return Ok(self.prompt(reason, ran));
        }
        let ran = ran.transpose()?;
        Ok(Said::from(match (end, ran) {
            (End::Ready(response), _) => response,
            (End::Turn(Some(why)), _) => {
                self.metrics.ignored(why);
                HttpResponse::json(200, &TurnAnswer::ignored(why))
            }
            (
                End::Turn(None),
                Some(Answer::Response(Response::Ingest {
                    records,
                    repeated,
                    ignored,
                })),
            ) => {
                let answer = TurnAnswer::new(&records, repeated, ignored);
                if let Some(why) = answer.ignored {
                    self.metrics.ignored(why);
                }
                HttpResponse::json(200, &answer)
            }
            (End::List, Some(Answer::Absent)) => HttpResponse::json(200, &ListAnswer::default()),
            (End::List, Some(Answer::Response(Response::List(listing)))) => {
                let answer = ListAnswer {
                    records: listing.records.iter().map(Into::into).collect(),
                    next: listing.next,
                };
                HttpResponse::json(200, &answer)
            }
            (End::Record | End::Forgotten(false), Some(Answer::Absent)) => {
                // As the engine says it of a memory that is there: whether it is, is nobody's business.
                return Err(unknown().into());
            }
            (End::Record, Some(Answer::Response(Response::Get { record }))) => {
                HttpResponse::json(200, &crate::wire::RecordBody::from(&record))
            }
            (End::Forgotten(true), Some(Answer::Absent)) => {
                HttpResponse::json(200, &ForgottenAnswer::default())
            }
            (
                End::Forgotten(_),
                Some(Answer::Response(Response::Forget {
                    erased, receipt, ..
                })),
            ) => HttpResponse::json(200, &ForgottenAnswer { erased, receipt }),
            (End::Remembered, Some(Answer::Response(Response::Remember { records }))) => {
                let records = records.iter().map(|noted| (&noted.record).into()).collect();
                HttpResponse::json(200, &RememberAnswer { records })
            }
            (End::Removed, Some(Answer::Removed(Some(receipt)))) => {
                HttpResponse::json(200, &RemovedAnswer { receipt })
            }
            (End::Removed, Some(Answer::Removed(None) | Answer::Absent)) => {
                HttpResponse::empty(204)
            }
            (End::Exported, Some(Answer::Absent)) => {
                return Err(Problem::new(Kind::NotFound, "there is no such memory"));
            }
            (End::Exported, Some(Answer::File(file))) => {
                HttpResponse::new(200, "application/x-ndjson", file)
            }
            (End::Granted(grant), _) => {
                let token = grant.token(&self.config);
                let answer = GrantAnswer {
                    grant: token.ok_or_else(|| {
                        Problem::new(Kind::Internal, "the grant cannot be signed")
                    })?,
                    expires_ms: grant.exp.saturating_mul(1_000),
                };
                HttpResponse::json(201, &answer)
            }
            (End::Reported, _) => {
                let found = call.plan.report.take().map(|report| report.found);
                HttpResponse::json(200, &found.unwrap_or_default())
            }
            _ => {
                return Err(Problem::new(
                    Kind::Internal,
                    "the answer is of another kind of work",
                ));
            }
        }))
    }

    fn prompt(&mut self, reason: Option<&'static str>, ran: Option<Result<Answer, Error>>) -> Said {
        let answer = match (reason, ran) {
            (Some(reason), _) => PromptAnswer::without(reason),
            (
                _,
                Some(Ok(Answer::Response(Response::Recall(prompt) | Response::Profile(prompt)))),
            ) => PromptAnswer::new(prompt, None),
            (_, Some(Ok(Answer::Late(prompt)))) => PromptAnswer::new(prompt, Some("deadline")),
            (_, Some(Ok(Answer::Replica(replica)))) => {
                let why = replica.instead_of.map(|code| match code {
                    ErrorCode::Aborted => "deadline",
                    code => code.as_str(),
                });
                PromptAnswer {
                    generation: Some(replica.generation),
                    age_ms: Some(replica.age_ms),
                    ..PromptAnswer::new(replica.prompt, why)
                }
            }
            // Nobody has told anything yet.
            (_, Some(Ok(Answer::Absent))) => PromptAnswer::default(),
            (_, Some(Err(error))) => PromptAnswer::failed(&error),
            _ => PromptAnswer::without(ErrorCode::Internal.as_str()),
        };
        if let Some(reason) = &answer.reason {
            self.metrics.fallback(reason);
        }
        Said {
            response: HttpResponse::json(200, &answer),
            text: Some(answer.prompt),
        }
    }
}

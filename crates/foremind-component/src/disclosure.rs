//! The interface `disclosure`.

use foremind_engine::{Audience, Exposure, Prompt, Pseudonym, restored};
use foremind_memory::{Request, Response};

use crate::bindings::exports::foremind::memory::disclosure::{self, Guest};
use crate::bindings::exports::foremind::memory::memories::MemoryBorrow;
use crate::bindings::exports::foremind::memory::types;
use crate::errors::case;
use crate::memories::{BUDGET_TOKENS, Component, Open, mismatch, read_scope, shown};

impl Guest for Component {
    fn recall(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
        query: String,
        budget_tokens: Option<u32>,
        audience: disclosure::Audience,
    ) -> Result<disclosure::Disclosed, types::Error> {
        let recalled = |memory: &Open| {
            let request = Request::Recall {
                audience: read(audience),
                scope: read_scope(scope)?,
                query,
                budget_tokens: budget_tokens.unwrap_or(BUDGET_TOKENS),
                as_of_ms: None,
                exposure: Exposure::Full,
                deadline_ms: None,
                explain: false,
            };
            match memory.drive(request)? {
                Response::Recall(prompt) => Ok(disclosed(prompt)),
                _ => Err(mismatch()),
            }
        };
        recalled(memory.get()).map_err(case)
    }

    fn profile(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
        budget_tokens: Option<u32>,
        audience: disclosure::Audience,
    ) -> Result<disclosure::Disclosed, types::Error> {
        let profiled = |memory: &Open| {
            let request = Request::Profile {
                audience: read(audience),
                scope: read_scope(scope)?,
                budget_tokens: budget_tokens.unwrap_or(BUDGET_TOKENS),
                as_of_ms: None,
            };
            match memory.drive(request)? {
                Response::Profile(prompt) => Ok(disclosed(prompt)),
                _ => Err(mismatch()),
            }
        };
        profiled(memory.get()).map_err(case)
    }

    fn restore(answer: String, pseudonyms: Vec<disclosure::Pseudonym>) -> String {
        let known = pseudonyms.into_iter().map(|one| Pseudonym {
            placeholder: one.placeholder,
            text: one.text,
        });
        restored(&answer, &known.collect::<Vec<_>>())
    }
}

fn read(audience: disclosure::Audience) -> Audience {
    match audience {
        disclosure::Audience::Remote => Audience::Remote,
        disclosure::Audience::Device => Audience::Device,
    }
}

fn disclosed(mut prompt: Prompt) -> disclosure::Disclosed {
    let pseudonyms = core::mem::take(&mut prompt.pseudonyms).into_iter();
    disclosure::Disclosed {
        pseudonyms: pseudonyms
            .map(|one| disclosure::Pseudonym {
                placeholder: one.placeholder,
                text: one.text,
            })
            .collect(),
        prompt: shown(prompt),
    }
}

//! After an erasure: what a cut commit left in the store goes as well, and a receipt is written down.
//!
//! A value that nothing names may hold what was erased. It is deleted together with a swap of the head, so that a writer
//! who had just written it under the head before finds that head gone and writes it anew.

use foremind_engine::Response;
use foremind_types::{Ambient, Change, Digest, ErasedCounts, Error, Receipt, RecordId};
use foremind_vault::Draws;
use serde::Serialize;

use crate::memory::{Op, Phase};
use crate::merge::Merge;
use crate::task::{TaskReply, TaskStep, out_of_turn};
use crate::{Memory, Step};

/// An erasure that is stored, on its way to its receipt.
#[derive(Debug)]
pub(crate) struct Erasure {
    /// Records that it erases.
    records: u32,
    /// Root over the tombstones.
    erased: Digest,
    /// Values deleted so far.
    pub(crate) values: u32,
    /// The engine's answer, once it has one.
    response: Option<Response>,
    receipt: Option<Receipt>,
}

impl Erasure {
    /// Whether the engine is done.
    pub(crate) fn is_answered(&self) -> bool {
        self.response.is_some()
    }

    /// The answer, once the receipt is written.
    pub(crate) fn end(&mut self) -> Option<Response> {
        let proof = self.receipt.take()?;
        let mut response = self.response.take()?;
        if let Response::Forget {
            counts, receipt, ..
        } = &mut response
        {
            *counts = proof.counts;
            *receipt = Some(Box::new(proof));
        }
        Some(response)
    }
}

impl Memory {
    /// Adds to changes that erase the tombstones of what they erase.
    pub(crate) fn bury(&self, changes: &mut Vec<Change>) -> Option<Erasure> {
        let erased = changes.iter().filter_map(|change| match change {
            Change::Erase { id, .. } => self.engine().stored(*id),
            _ => None,
        });
        let identities = erased.map(foremind_engine::Engine::identity_of);
        let tombstones: Vec<[u8; 16]> = identities
            .map(|identity| self.vault().tombstone(&identity))
            .collect();
        if tombstones.is_empty() {
            return None;
        }
        let (change, erased) = self.vault().bury(&tombstones);
        changes.push(change);
        Some(Erasure {
            records: tombstones.len() as u32,
            erased,
            values: 0,
            response: None,
            receipt: None,
        })
    }

    /// The engine has answered: looks for what nothing names.
    pub(crate) fn clear(
        &mut self,
        op: &mut Op,
        response: Response,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        if let Some(erasure) = &mut op.erasure {
            erasure.response = Some(response);
        }
        self.clear_again(op, draws, at)
    }

    /// The same, after another writer was faster.
    pub(crate) fn clear_again(
        &mut self,
        op: &mut Op,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        self.merge(op, Box::new(Merge::clearing()), TaskReply::Begin, draws, at)
    }

    pub(crate) fn merge(
        &mut self,
        op: &mut Op,
        mut merge: Box<Merge>,
        reply: TaskReply,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        let Some(step) = merge.step(self, reply, draws)? else {
            return self.certify(op, draws, at);
        };
        op.phase = Phase::Merging(merge);
        Ok(match step {
            TaskStep::NeedRead { keys } => Step::NeedRead { keys },
            TaskStep::NeedNames => Step::NeedNames,
            TaskStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => {
                op.deletes(&deletes);
                Step::Commit {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                }
            }
            _ => return Err(out_of_turn()),
        })
    }

    fn certify(&mut self, op: &mut Op, draws: &mut Draws, at: &Ambient) -> Result<Step, Error> {
        let generation = self.generation() + 1;
        let root = self.vault().root(self.engine().all_stored())?;
        let Some((erasure, counts)) = op.erasure.as_mut().and_then(|erasure| {
            let counts = match &erasure.response {
                Some(Response::Forget { counts, .. }) => *counts,
                // What is written anew is gone in its first form: proven like the rest, though nobody asked for a receipt.
                Some(_) => ErasedCounts {
                    records: erasure.records,
                    ..ErasedCounts::default()
                },
                None => return None,
            };
            Some((erasure, counts))
        }) else {
            return Err(out_of_turn());
        };
        let mut receipt = Receipt {
            memory_id: self.memory_id().to_string(),
            generation,
            at_ms: at.now_ms,
            previous: Digest::default(),
            erased: erasure.erased,
            root,
            counts,
            mac: Digest::default(),
            key: None,
        };
        receipt.counts.values = erasure.values;
        let change = self.vault().seal_receipt(&mut receipt);
        erasure.receipt = Some(receipt);
        let entry = self.entry(vec![change], at);
        self.write(op, vec![entry], true, draws)
    }
}

/// What a receipt is worth now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptCheck {
    /// It is this memory's, unaltered, and every receipt before it is known.
    pub chain: bool,
    /// Records that were erased, now or before, and of which a stored value or an index holds something.
    pub found: u64,
    /// Whether the records are those that were left; absent when something was written since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<bool>,
    /// Whether all of this speaks for it.
    pub holds: bool,
}

impl ReceiptCheck {
    pub(crate) fn conclude(&mut self) {
        self.holds = self.chain && self.found == 0 && self.root != Some(false);
    }

    /// Of records that a memory has in its mind although they were erased.
    pub(crate) fn remembers(&mut self, memory: &Memory) {
        let held = |id: &RecordId| memory.engine().holds(*id);
        self.found += memory.vault().erased().filter(held).count() as u64;
        self.conclude();
    }
}

//! The interface `erasure`.

use foremind_memory::{
    KeySource, OpenOptions, ReceiptCheck, Report, Response, Survey, Task, TaskReply, TaskStep,
    Verified,
};
use foremind_types::{Digest, ErasedCounts, Error, Receipt};

use crate::bindings::exports::foremind::memory::erasure::{self, Guest};
use crate::bindings::exports::foremind::memory::memories::{ForgetTarget, MemoryBorrow};
use crate::bindings::exports::foremind::memory::types;
use crate::clock::Clock;
use crate::errors::case;
use crate::memories::{Component, Open, forget, host_key, invalid, mismatch, task_reply};
use crate::values::Values;

impl Guest for Component {
    fn forget(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
        target: ForgetTarget,
    ) -> Result<(u32, Option<erasure::Receipt>), types::Error> {
        let forgotten = |memory: &Open| match memory.drive(forget(scope, target, false)?)? {
            Response::Forget {
                erased, receipt, ..
            } => Ok((erased, receipt.map(|receipt| given(*receipt)))),
            _ => Err(mismatch()),
        };
        forgotten(memory.get()).map_err(case)
    }

    fn preview(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
        target: ForgetTarget,
    ) -> Result<Vec<String>, types::Error> {
        let preview = |memory: &Open| match memory.drive(forget(scope, target, true)?)? {
            Response::Forget { preview, .. } => {
                Ok(preview.iter().map(|record| record.id.to_string()).collect())
            }
            _ => Err(mismatch()),
        };
        preview(memory.get()).map_err(case)
    }

    fn destroy(memory: MemoryBorrow<'_>, key: Vec<u8>) -> Result<erasure::Receipt, types::Error> {
        let destroyed = |memory: &Open| {
            let key = KeySource::Host(host_key(key)?);
            match memory.task(Task::Destroy { key })? {
                Report::Destroy { receipt } => Ok(given(*receipt)),
                _ => Err(mismatch()),
            }
        };
        destroyed(memory.get()).map_err(case)
    }

    fn verify(
        memory: MemoryBorrow<'_>,
        receipt: Option<erasure::Receipt>,
    ) -> Result<erasure::Verified, types::Error> {
        let verified = |memory: &Open| {
            let receipt = receipt.map(taken).transpose()?.map(Box::new);
            report(memory.task(Task::Verify { receipt })?)
        };
        verified(memory.get()).map_err(case)
    }

    fn verify_end(
        bucket: String,
        key: Vec<u8>,
        receipt: erasure::Receipt,
    ) -> Result<erasure::Verified, types::Error> {
        verify_end(&bucket, key, receipt).map_err(case)
    }
}

fn verify_end(
    bucket: &str,
    key: Vec<u8>,
    receipt: erasure::Receipt,
) -> Result<erasure::Verified, Error> {
    let options = OpenOptions::new(KeySource::Host(host_key(key)?));
    let mut survey = Survey::of_receipt(options, Box::new(taken(receipt)?));
    let values = Values::open(bucket)?;
    let clock = Clock::new(0)?;
    let mut reply = TaskReply::Begin;
    loop {
        reply = match survey.step(reply, &clock.ambient()?) {
            TaskStep::Done(result) => return report(result?),
            step => task_reply(&values, step),
        };
    }
}

fn report(report: Report) -> Result<erasure::Verified, Error> {
    let Report::Verify(Verified {
        entries,
        damaged,
        missing,
        whole,
        receipt,
        ..
    }) = report
    else {
        return Err(mismatch());
    };
    Ok(erasure::Verified {
        entries,
        damaged: damaged.into_iter().map(|one| one.name).collect(),
        missing,
        whole,
        receipt: receipt.map(
            |ReceiptCheck {
                 chain,
                 found,
                 root,
                 holds,
             }| erasure::ReceiptCheck {
                chain,
                found,
                root,
                holds,
            },
        ),
    })
}

fn given(receipt: Receipt) -> erasure::Receipt {
    let counts = receipt.counts;
    erasure::Receipt {
        memory_id: receipt.memory_id,
        generation: receipt.generation,
        at_ms: receipt.at_ms,
        previous: receipt.previous.to_string(),
        erased: receipt.erased.to_string(),
        root: receipt.root.to_string(),
        counts: erasure::Counts {
            records: counts.records,
            derived: counts.derived,
            vectors: counts.vectors,
            words: counts.words,
            profile: counts.profile,
            pending: counts.pending,
            values: counts.values,
        },
        mac: receipt.mac.to_string(),
        key: receipt.key,
    }
}

fn taken(receipt: erasure::Receipt) -> Result<Receipt, Error> {
    let digest = |text: &str| {
        Digest::parse(text)
            .ok_or_else(|| invalid("a digest of the receipt has no 64 hexadecimal digits"))
    };
    let counts = receipt.counts;
    Ok(Receipt {
        previous: digest(&receipt.previous)?,
        erased: digest(&receipt.erased)?,
        root: digest(&receipt.root)?,
        mac: digest(&receipt.mac)?,
        memory_id: receipt.memory_id,
        generation: receipt.generation,
        at_ms: receipt.at_ms,
        counts: ErasedCounts {
            records: counts.records,
            derived: counts.derived,
            vectors: counts.vectors,
            words: counts.words,
            profile: counts.profile,
            pending: counts.pending,
            values: counts.values,
        },
        key: receipt.key,
    })
}

//! Reading everything stored, whatever state it is in, and making whole what can be.

use std::collections::{BTreeSet, VecDeque};

use foremind_types::order::sort_by;
use foremind_types::small::{SmallMap, SmallSet};

use foremind_engine::Engine;
use foremind_types::order::set_of;
use foremind_types::{Ambient, Entry, Error, ErrorCode, MemoryId, Receipt, RecordId, WriterId};
use foremind_vault::{
    DataKey, Head, Key, KeySlot, Run, Salvage, Vault, VaultError, WrapMethod, mac,
};

use crate::catch_up::VALUES_PER_READ;
use crate::destroy::bytes_of;
use crate::erasure::ReceiptCheck;
use crate::task::{Damage, Report, TaskReply, TaskStep, Verified, draws_of, out_of_turn};
use crate::{KeySource, OpenOptions};

/// Verifies a memory that may not open, and repairs it if asked.
///
/// A repair keeps every entry that can be read, in a log made anew, and deletes what it replaces; a memory of which no
/// entry can be read is left as it is. It is for a memory that nothing else has open: what has, gets `storage-lost` at
/// its next operation.
#[derive(Debug)]
pub struct Survey {
    key: Option<KeySource>,
    repair: bool,
    steps: u64,
    phase: Phase,
    stored: Stored,
    found: Verified,
    /// What an intact log has, by writer and number.
    entries: Vec<Entry>,
    counters: SmallMap<WriterId, u64>,
    log_damaged: bool,
    receipt: Option<Box<Receipt>>,
    /// Records of which a value holds something, while a receipt is looked at.
    held: BTreeSet<RecordId>,
    /// What the stored entries say, while a receipt is looked at.
    fold: Option<Box<Engine>>,
}

/// The three values of constant name.
#[derive(Debug, Default)]
struct Stored {
    slot: Option<Vec<u8>>,
    spare: Option<Vec<u8>>,
    head: Option<Vec<u8>>,
    /// The bytes of a slot that opens, if it does not stand in both places.
    mend: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Phase {
    Start,
    Reading,
    Unwrapping(KeySlot),
    Naming(Box<Walk>),
    /// Of a memory that is no more.
    Ended,
    Walking(Box<Walk>),
    Replacing {
        kept: u64,
        lost: u64,
    },
    Finished,
}

/// What is read with the data key at hand.
#[derive(Debug)]
struct Walk {
    salvage: Salvage,
    vault: Option<Vault>,
    can_list: bool,
    /// What the head names.
    runs: VecDeque<Run>,
    profile: Option<Key>,
    /// What the store has beside that.
    strays: VecDeque<Key>,
    asked: Asked,
    /// Names that a repair deletes.
    replaced: SmallSet<Key>,
}

#[derive(Debug)]
enum Asked {
    Runs(Vec<Run>),
    Profile(Key),
    Strays(Vec<Key>),
}

impl Survey {
    /// Of a memory that need not open. Of the options only the key counts.
    #[must_use]
    pub fn new(options: OpenOptions, repair: bool) -> Self {
        Self::with(Some(options.key), repair, Phase::Start)
    }

    /// Of a memory that is no more: checks the receipt of its end. Of the options only the key counts.
    #[must_use]
    pub fn of_receipt(options: OpenOptions, receipt: Box<Receipt>) -> Self {
        Self {
            receipt: Some(receipt),
            ..Self::new(options, false)
        }
    }

    /// Of an open memory.
    pub(crate) fn opened(vault: &Vault, receipt: Option<Box<Receipt>>) -> Self {
        let walk = Walk::new(vault.memory_id(), vault.data_key());
        Self {
            fold: receipt.is_some().then(Box::default),
            receipt,
            ..Self::with(None, false, Phase::Naming(Box::new(walk)))
        }
    }

    fn with(key: Option<KeySource>, repair: bool, phase: Phase) -> Self {
        Self {
            key,
            repair,
            steps: 0,
            phase,
            stored: Stored::default(),
            found: Verified::default(),
            entries: Vec::new(),
            counters: SmallMap::new(),
            log_damaged: false,
            receipt: None,
            held: BTreeSet::new(),
            fold: None,
        }
    }

    /// Says what is needed next; the first reply is [`TaskReply::Begin`]. `reply` answers the step before.
    pub fn step(&mut self, reply: TaskReply, at: &Ambient) -> TaskStep {
        if let TaskReply::Failed(error) = reply {
            return TaskStep::Done(Err(error));
        }
        self.steps += 1;
        self.advance(reply, at)
            .unwrap_or_else(|error| TaskStep::Done(Err(error)))
    }

    fn advance(&mut self, reply: TaskReply, at: &Ambient) -> Result<TaskStep, Error> {
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        match (phase, reply) {
            (Phase::Start, TaskReply::Begin) => {
                self.phase = Phase::Reading;
                Ok(read_constants())
            }
            // Of an open memory the key is known.
            (Phase::Naming(walk), TaskReply::Begin) => {
                self.phase = Phase::Naming(walk);
                Ok(read_constants())
            }
            (Phase::Reading, TaskReply::Values(values)) => {
                self.constants(values);
                // What is left of the memory speaks against its receipt; the key of that stands in it.
                if let Some(receipt) = &self.receipt {
                    let key = receipt.key.as_deref().and_then(bytes_of);
                    self.stored = Stored {
                        slot: Some(key.unwrap_or_default()),
                        ..Stored::default()
                    };
                }
                self.unwrap()
            }
            (Phase::Unwrapping(slot), TaskReply::DataKey(data_key)) => {
                slot.accept(&data_key)?;
                self.unwrapped(slot.memory_id(), &data_key)
            }
            (Phase::Naming(walk), TaskReply::Values(values)) => {
                self.constants(values);
                self.check_slots();
                self.phase = Phase::Naming(walk);
                Ok(TaskStep::NeedNames)
            }
            (Phase::Naming(walk), TaskReply::Names(names)) => self.named(*walk, names, at),
            (Phase::Ended, TaskReply::Names(names)) => {
                let names = names.unwrap_or_default();
                let left = names.iter().filter(|name| Key::is_of_log(name)).count();
                if let Some(check) = &mut self.found.receipt {
                    check.found += left as u64;
                    check.conclude();
                }
                Ok(self.report())
            }
            (Phase::Walking(walk), TaskReply::Values(values)) => self.walked(*walk, &values, at),
            (Phase::Replacing { kept, lost }, TaskReply::Committed) => {
                Ok(self.repaired(true, kept, lost))
            }
            _ => Err(out_of_turn()),
        }
    }

    fn constants(&mut self, values: Vec<Option<Vec<u8>>>) {
        let mut values = values.into_iter();
        let mut next = || values.next().flatten();
        self.stored.slot = next();
        self.stored.spare = next();
        self.stored.head = next();
        let stored = [&self.stored.slot, &self.stored.spare, &self.stored.head];
        for value in stored.into_iter().flatten() {
            self.found.values += 1;
            self.found.bytes += value.len() as u64;
        }
    }

    fn damage(&mut self, key: &Key, error: &VaultError) {
        self.found.damaged.push(Damage {
            name: key.to_string(),
            why: error.to_string(),
        });
    }

    /// Reports what is wrong with `key` and `spare`, and gives the one to use.
    fn check_slots(&mut self) -> Option<KeySlot> {
        let read = |value: &Option<Vec<u8>>| value.as_deref().map(KeySlot::read);
        let (slot, spare) = (read(&self.stored.slot), read(&self.stored.spare));
        for (key, read) in [(Key::slot(), &slot), (Key::spare(), &spare)] {
            match read {
                Some(Err(error)) => self.damage(&key, error),
                None if key == Key::slot() => self.found.missing.push(key.to_string()),
                // Memories of the first builds have none.
                _ => {}
            }
        }
        let (slot, spare) = (slot.and_then(Result::ok), spare.and_then(Result::ok));
        match (slot, spare) {
            (Some(slot), spare) => {
                if !spare.is_some_and(|spare| spare.same_as(&slot)) {
                    self.stored.mend = self.stored.slot.clone();
                }
                Some(slot)
            }
            (None, Some(spare)) => {
                self.stored.mend = self.stored.spare.clone();
                Some(spare)
            }
            (None, None) => None,
        }
    }

    fn unwrap(&mut self) -> Result<TaskStep, Error> {
        let Stored {
            slot, spare, head, ..
        } = &self.stored;
        if slot.is_none() && spare.is_none() && head.is_none() {
            return Err(Error::new(
                ErrorCode::StorageLost,
                "there is no memory in this store",
            ));
        }
        for value in [slot, spare, head].into_iter().flatten() {
            // Nothing of a newer format is touched.
            let newer = match KeySlot::read(value) {
                Err(error @ VaultError::NewerFormat { .. }) => Some(error),
                _ => match Head::generation_of(value) {
                    Err(error @ VaultError::NewerFormat { .. }) => Some(error),
                    _ => None,
                },
            };
            if let Some(error) = newer {
                return Err(error.into());
            }
        }
        let Some(slot) = self.check_slots() else {
            if self.repair {
                return Err(Error::new(
                    ErrorCode::Corrupt,
                    "`key` and `spare` are both lost or damaged, and without the wrapped key nothing can be read; put back `key` from a copy of the store, or import an export",
                ));
            }
            // A receipt without a key of its own is of no end.
            self.found.receipt = self.receipt.as_ref().map(|_| ReceiptCheck::default());
            return Ok(self.report());
        };
        let data_key = match &self.key {
            Some(KeySource::Host(key)) => slot.unwrap_host(key.as_bytes())?,
            Some(KeySource::Passphrase { passphrase, .. }) => slot.unwrap_passphrase(passphrase)?,
            Some(KeySource::External) if slot.method() == WrapMethod::External => {
                let step = TaskStep::NeedKey {
                    method: slot.method(),
                    wrapped: slot.blob().to_vec(),
                };
                self.phase = Phase::Unwrapping(slot);
                return Ok(step);
            }
            _ => {
                return Err(VaultError::WrapMethod {
                    stored: slot.method(),
                }
                .into());
            }
        };
        self.unwrapped(slot.memory_id(), &data_key)
    }

    fn unwrapped(&mut self, memory_id: MemoryId, data_key: &DataKey) -> Result<TaskStep, Error> {
        if let Some(receipt) = &self.receipt {
            let mut check = ReceiptCheck {
                chain: receipt.memory_id == memory_id.to_string()
                    && receipt.mac == mac(data_key, receipt),
                found: self.found.values,
                ..ReceiptCheck::default()
            };
            check.conclude();
            self.found.receipt = Some(check);
            self.phase = Phase::Ended;
            return Ok(TaskStep::NeedNames);
        }
        self.phase = Phase::Naming(Box::new(Walk::new(memory_id, data_key)));
        Ok(TaskStep::NeedNames)
    }

    fn named(
        &mut self,
        mut walk: Walk,
        names: Option<Vec<String>>,
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        let head = self.stored.head.take();
        match &head {
            None => self.found.missing.push(Key::head().to_string()),
            Some(value) => match walk.open(value) {
                Ok(vault) => {
                    self.found.generation = vault.head().token().generation();
                    walk.salvage.saw(self.found.generation);
                    walk.runs = vault.head().runs().to_vec().into();
                    walk.profile = vault.profile_key();
                    walk.replaced = vault.names();
                    walk.vault = Some(vault);
                }
                Err(error) => {
                    self.damage(&Key::head(), &error);
                    if let Ok(generation) = Head::generation_of(value) {
                        walk.salvage.saw(generation);
                    }
                }
            },
        }
        walk.can_list = names.is_some();
        if let Some(names) = names {
            let mut foreign = Vec::new();
            // In order, each once.
            let mut names = names;
            sort_by(&mut names, Ord::cmp);
            names.dedup();
            for name in names {
                match Key::parse(&name) {
                    None => foreign.push(name),
                    Some(key) if !Key::is_of_log(&name) || walk.replaced.contains(&key) => {}
                    Some(key) => walk.strays.push_back(key),
                }
            }
            self.found.orphans = Some(Vec::new());
            self.found.foreign = Some(foreign);
        }
        self.ask(walk, at)
    }

    fn ask(&mut self, mut walk: Walk, at: &Ambient) -> Result<TaskStep, Error> {
        let mut keys: Vec<Key> = Vec::new();
        if let Some(vault) = &walk.vault
            && !walk.runs.is_empty()
        {
            let mut runs = Vec::new();
            while let Some(run) = walk.runs.front() {
                if !keys.is_empty() && keys.len() + run.values() > VALUES_PER_READ {
                    break;
                }
                keys.extend(vault.keys_of(run));
                runs.extend(walk.runs.pop_front());
            }
            walk.asked = Asked::Runs(runs);
        } else if let Some(key) = walk.profile.take() {
            keys.push(key.clone());
            walk.asked = Asked::Profile(key);
        } else {
            let count = walk.strays.len().min(VALUES_PER_READ);
            keys.extend(walk.strays.drain(..count));
            walk.asked = Asked::Strays(keys.clone());
        }
        if keys.is_empty() {
            return self.finish(walk, at);
        }
        self.phase = Phase::Walking(Box::new(walk));
        Ok(TaskStep::NeedRead { keys })
    }

    fn walked(
        &mut self,
        mut walk: Walk,
        values: &[Option<Vec<u8>>],
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        match core::mem::replace(&mut walk.asked, Asked::Strays(Vec::new())) {
            Asked::Runs(runs) => {
                let mut values = values;
                for run in runs {
                    let (own, later) = values.split_at(run.values().min(values.len()));
                    values = later;
                    self.run(&mut walk, &run, own)?;
                }
            }
            Asked::Profile(key) => {
                let value = values.first().cloned().flatten();
                if let Some(vault) = &walk.vault {
                    // What a reader need not look at, a survey does: the checksum.
                    let sound = value
                        .as_deref()
                        .map_or(Ok(()), |v| walk.salvage.check(&key, v));
                    match sound.and_then(|()| vault.read_profile(value.clone())) {
                        Ok(heard) => {
                            if self.receipt.is_some() {
                                self.held.extend(heard.iter().map(|one| one.record.id));
                            }
                        }
                        Err(VaultError::Missing { .. }) => {
                            self.found.missing.push(key.to_string());
                        }
                        Err(error) => self.damage(&key, &error),
                    }
                }
                self.count(value.as_deref());
            }
            Asked::Strays(keys) => {
                for (key, value) in keys.iter().zip(values) {
                    self.count(value.as_deref());
                    self.stray(&mut walk, key, value.as_deref());
                }
            }
        }
        self.ask(walk, at)
    }

    fn count(&mut self, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.found.values += 1;
            self.found.bytes += value.len() as u64;
        }
    }

    fn run(&mut self, walk: &mut Walk, run: &Run, values: &[Option<Vec<u8>>]) -> Result<(), Error> {
        let Some(vault) = &mut walk.vault else {
            return Ok(());
        };
        let mut whole = true;
        for (at, key) in vault.keys_of(run).iter().enumerate() {
            let value = values.get(at).and_then(Option::as_deref);
            self.count(value);
            match value.map(|value| walk.salvage.check(key, value)) {
                None => {
                    whole = false;
                    self.found.missing.push(key.to_string());
                }
                Some(Err(error)) => {
                    whole = false;
                    self.damage(key, &error);
                }
                Some(Ok(())) => {}
            }
        }
        let read = if whole {
            vault.read_run(run, values)
        } else {
            self.lose(run);
            return Ok(());
        };
        match read {
            Ok(entries) => {
                for one in entries {
                    if let Some(fold) = &mut self.fold {
                        vault.absorb(&one)?;
                        self.held.extend(Vault::held_in(&one.entry));
                        fold.apply(one.entry.clone());
                    }
                    self.entry(one.entry);
                }
            }
            Err(error) => {
                let key = vault.keys_of(run).into_iter().next();
                self.damage(&key.unwrap_or_else(Key::head), &error);
                self.lose(run);
            }
        }
        Ok(())
    }

    fn lose(&mut self, run: &Run) {
        self.log_damaged = true;
        let (first, last) = run.sequences().into_inner();
        self.found.lost_entries += last - first + 1;
    }

    /// Counts an entry that was read, and checks that it follows the ones before.
    fn entry(&mut self, entry: Entry) {
        self.found.entries += 1;
        let next = self.counters.entry(entry.writer).or_insert(0);
        if entry.counter < *next || (entry.counter > *next && !self.log_damaged) {
            let error = VaultError::Chain {
                sequence: self.found.entries,
                link: "its writer's entries are not consecutive",
            };
            self.log_damaged = true;
            self.found.damaged.push(Damage {
                name: Key::head().to_string(),
                why: error.to_string(),
            });
        }
        *next = (*next).max(entry.counter.saturating_add(1));
        if self.repair {
            self.entries.push(entry);
        }
    }

    /// A value of the form of ours that the head does not name.
    fn stray(&mut self, walk: &mut Walk, key: &Key, value: Option<&[u8]>) {
        let Some(value) = value else {
            return;
        };
        let name = key.to_string();
        match walk.salvage.take(key, value) {
            Ok(()) => {
                walk.replaced.insert(key.clone());
                self.found.orphans.get_or_insert_default().push(name);
            }
            Err(VaultError::Seal { .. } | VaultError::NotForemind { .. }) => {
                self.found.foreign.get_or_insert_default().push(name);
            }
            // Without a head it may have been one of its values.
            Err(error) if walk.vault.is_none() => self.damage(key, &error),
            Err(_) => self.found.orphans.get_or_insert_default().push(name),
        }
    }

    fn finish(&mut self, walk: Walk, at: &Ambient) -> Result<TaskStep, Error> {
        let rebuild = walk.vault.is_none() || self.log_damaged;
        if !self.repair {
            if walk.vault.is_none() {
                self.found.entries = walk.salvage.entries().len() as u64;
            }
            self.check(&walk)?;
            return Ok(self.report());
        }
        self.found.whole = self.found.damaged.is_empty() && self.found.missing.is_empty();
        let mut puts = Vec::new();
        if let Some(slot) = self.stored.mend.take() {
            puts.extend([(Key::spare(), slot.clone()), (Key::slot(), slot)]);
        }
        let mut deletes = Vec::new();
        let (mut kept, mut lost) = (self.found.entries, 0);
        if rebuild || !self.found.whole {
            if !walk.can_list && walk.vault.is_none() {
                return Err(Error::new(
                    ErrorCode::Corrupt,
                    "`head` is lost or damaged, and this store cannot list what there is; repair a copy in a store that can",
                ));
            }
            let mut entries = core::mem::take(&mut self.entries);
            if rebuild {
                // What lies about may be an older form of what is lost, but not of what is there.
                let known = set_of(entries.iter().map(|entry| (entry.writer, entry.counter)));
                let more = walk.salvage.entries();
                let more = more.into_iter().filter(|(name, _)| !known.contains(name));
                entries.extend(more.map(|(_, one)| one.entry));
            }
            let named = walk
                .vault
                .as_ref()
                .map_or(0, |vault| vault.head().last_sequence());
            if entries.is_empty() && (named > 0 || walk.vault.is_none()) {
                return Err(Error::new(
                    ErrorCode::Corrupt,
                    "no entry of the memory can be read; nothing was changed",
                ));
            }
            let mut draws = draws_of(at, self.steps);
            let rebuilt = walk.salvage.rebuild(entries, &mut draws)?;
            kept = rebuilt.entries;
            lost = named.saturating_sub(kept).max(rebuilt.holes);
            self.found.generation = rebuilt.generation;
            puts.extend(rebuilt.puts);
            let constant = [Key::slot(), Key::spare(), Key::head()];
            let replaced = walk.replaced.into_iter();
            deletes.extend(replaced.filter(|key| !constant.contains(key)));
        }
        if puts.is_empty() {
            return Ok(self.repaired(false, kept, lost));
        }
        self.phase = Phase::Replacing { kept, lost };
        Ok(TaskStep::Replace { puts, deletes })
    }

    /// What the receipt is worth by what is stored.
    fn check(&mut self, walk: &Walk) -> Result<(), Error> {
        let (Some(receipt), Some(fold), Some(vault)) = (&self.receipt, &self.fold, &walk.vault)
        else {
            return Ok(());
        };
        self.held.extend(walk.salvage.held());
        let proof = vault.proof(receipt);
        let root = if proof.is_last {
            Some(vault.root(fold.all_stored())? == receipt.root)
        } else {
            None
        };
        let found = vault.erased().filter(|id| self.held.contains(id)).count();
        self.found.receipt = Some(ReceiptCheck {
            chain: proof.chain,
            found: found as u64,
            root,
            holds: false,
        });
        Ok(())
    }

    fn report(&mut self) -> TaskStep {
        let mut found = core::mem::take(&mut self.found);
        found.whole = found.damaged.is_empty() && found.missing.is_empty();
        TaskStep::Done(Ok(Report::Verify(found)))
    }

    fn repaired(&mut self, changed: bool, kept: u64, lost: u64) -> TaskStep {
        TaskStep::Done(Ok(Report::Repair {
            found: core::mem::take(&mut self.found),
            changed,
            kept,
            lost,
        }))
    }
}

impl Walk {
    fn new(memory_id: MemoryId, data_key: &DataKey) -> Self {
        Self {
            salvage: Salvage::new(memory_id, data_key),
            vault: None,
            can_list: false,
            runs: VecDeque::new(),
            profile: None,
            strays: VecDeque::new(),
            asked: Asked::Strays(Vec::new()),
            replaced: SmallSet::new(),
        }
    }

    fn open(&self, head: &[u8]) -> Result<Vault, VaultError> {
        Vault::open(self.salvage.memory_id(), self.salvage.data_key(), head)
    }
}

fn read_constants() -> TaskStep {
    TaskStep::NeedRead {
        keys: vec![Key::slot(), Key::spare(), Key::head()],
    }
}

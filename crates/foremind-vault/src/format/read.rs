//! Reads the plaintexts of format 1: from the bytes to the vocabulary in one step.
//!
//! What serde derives for the structs of [`v1`] reads the same, and is the oracle of the tests. It is not used because
//! each structure and each list was made twice with it, and each vector byte by byte: opening 10,000 records took 1.1 times as long.

use foremind_types::{
    Change, Embedding, Entry, Evidence, HeadId, ModelId, Name, Provenance, Reason, Record,
    RecordId, Revision, Route, Scope, Supersedes, Times, Ttl, WriterId,
};

use super::v1::{self, Code};
use crate::Heard;

/// `Err` names the part that is not in the layout.
pub(crate) type Read<T> = Result<T, &'static str>;

/// Inverse of [`super::encode_entries`].
pub(crate) fn decode_entries(plain: &[u8]) -> Read<Vec<Entry>> {
    let (strings, mut bytes) = strings(plain)?;
    let entries = bytes.list(5, |bytes| bytes.entry(&strings))?;
    bytes.end()?;
    Ok(entries)
}

/// Inverse of [`super::encode_profile`].
pub(crate) fn decode_profile(plain: &[u8]) -> Read<Vec<Heard>> {
    let (strings, mut bytes) = strings(plain)?;
    let records = bytes.list(2, |bytes| {
        Ok(Heard {
            record: bytes.record(&strings)?,
            heard_ms: bytes.time()?,
        })
    })?;
    bytes.end()?;
    Ok(records)
}

/// The plaintext of a head.
pub(crate) fn decode_manifest(plain: &[u8]) -> Read<v1::Manifest> {
    let mut bytes = Bytes(plain);
    let manifest = v1::Manifest {
        last_sequence: bytes.number(64)?,
        runs: bytes.list(4, |bytes| {
            Ok(v1::Run {
                level: bytes.byte()?,
                first_sequence: bytes.number(64)?,
                last_sequence: bytes.number(64)?,
                place: bytes.place()?,
            })
        })?,
        derived: bytes.list(3, |bytes| {
            Ok(v1::Derived {
                kind: bytes.byte()?,
                at_sequence: bytes.number(64)?,
                place: bytes.place()?,
            })
        })?,
        garbage: bytes.list(1, Bytes::place)?,
    };
    bytes.end()?;
    Ok(manifest)
}

/// The strings that the rest names by position, and the rest.
fn strings(plain: &[u8]) -> Read<(Vec<&str>, Bytes<'_>)> {
    let mut bytes = Bytes(plain);
    let strings = bytes.list(1, Bytes::text)?;
    Ok((strings, bytes))
}

/// What is left to be read, in the notation of docs/FORMAT.md.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn end(&self) -> Read<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err("bytes left over")
    }

    fn byte(&mut self) -> Read<u8> {
        let (byte, rest) = self.0.split_first().ok_or("a number that is cut")?;
        self.0 = rest;
        Ok(*byte)
    }

    fn take(&mut self, count: usize) -> Read<&'b [u8]> {
        let taken = self.0.split_at_checked(count);
        let (taken, rest) = taken.ok_or("a length beyond the end")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("bytes that are cut")?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A varint of at most so many bits.
    fn number(&mut self, bits: u32) -> Read<u64> {
        let mut number = 0;
        let mut at = 0;
        while at < bits {
            let byte = self.byte()?;
            // The last byte has room for fewer than seven, and none follows it.
            if at + 7 > bits && byte >> (bits - at) != 0 {
                break;
            }
            number |= u64::from(byte & 0x7f) << at;
            if byte < 0x80 {
                return Ok(number);
            }
            at += 7;
        }
        Err("a number out of range")
    }

    fn small(&mut self) -> Read<u32> {
        self.number(32).map(|number| number as u32)
    }

    fn length(&mut self) -> Read<usize> {
        usize::try_from(self.number(64)?).map_err(|_| "a length beyond the end")
    }

    /// A signed number, zigzag.
    fn signed(&mut self, bits: u32) -> Read<i64> {
        let number = self.number(bits)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Unix milliseconds.
    fn time(&mut self) -> Read<i64> {
        self.signed(64)
    }

    fn float(&mut self) -> Read<f32> {
        self.array().map(f32::from_le_bytes)
    }

    fn text(&mut self) -> Read<&'b str> {
        let length = self.length()?;
        core::str::from_utf8(self.take(length)?).map_err(|_| "a text that is not UTF-8")
    }

    fn id(&mut self) -> Read<RecordId> {
        self.array().map(RecordId::from_bytes)
    }

    fn word<T: Code>(&mut self) -> Read<T> {
        T::from_code(self.byte()?).ok_or("word of the vocabulary")
    }

    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err("an option that is neither"),
        }
    }

    /// A sequence whose items take `least` bytes or more each, so that a count beyond the bytes asks for no memory.
    fn list<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let count = self.length()?;
        let mut list = Vec::with_capacity(count.min(self.0.len() / least));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn place(&mut self) -> Read<v1::Place> {
        Ok(v1::Place {
            generation: self.number(64)?,
            commit: self.array()?,
            ordinal: self.small()?,
            chunks: self.small()?,
            bytes: self.number(64)?,
        })
    }

    /// One of the strings before the entries.
    fn string<'s>(&mut self, strings: &[&'s str]) -> Read<&'s str> {
        let position = self.small()?;
        let string = usize::try_from(position)
            .ok()
            .and_then(|at| strings.get(at));
        string.copied().ok_or("string position")
    }

    fn name(&mut self, strings: &[&str]) -> Read<Name> {
        Name::new(self.string(strings)?).map_err(|_| "name")
    }

    fn optional_name(&mut self, strings: &[&str]) -> Read<Option<Name>> {
        self.optional(|bytes| bytes.name(strings))
    }

    fn entry(&mut self, strings: &[&str]) -> Read<Entry> {
        Ok(Entry {
            writer: WriterId(self.number(64)?),
            counter: self.number(64)?,
            lamport: self.number(64)?,
            at_ms: self.time()?,
            changes: self.list(2, |bytes| bytes.change(strings))?,
        })
    }

    fn change(&mut self, strings: &[&str]) -> Read<Change> {
        let variant = self.small()?;
        let revision = match variant {
            0 => return Ok(Change::Add(Box::new(self.record(strings)?))),
            1..=4 => {
                let id = self.id()?;
                let revision = self.revision(variant, strings)?;
                return Ok(Change::Revise { id, revision });
            }
            5 => Change::Embed {
                id: self.id()?,
                embedding: self.embedding(strings)?,
            },
            6 => Change::Turn {
                scope: self.scope(strings)?,
                thread: self.name(strings)?,
                turn: self.name(strings)?,
                records: self.list(16, Bytes::id)?,
            },
            7 => Change::Erase {
                id: self.id()?,
                at_ms: self.time()?,
            },
            8 => {
                let kind = self.byte()?;
                let length = self.length()?;
                let bytes = self.take(length)?.to_vec();
                Change::Keyed { kind, bytes }
            }
            _ => return Err("kind of change"),
        };
        Ok(revision)
    }

    fn revision(&mut self, variant: u32, strings: &[&str]) -> Read<Revision> {
        Ok(match variant {
            1 => Revision::Status {
                status: self.word()?,
                valid_to_ms: self.optional(Bytes::time)?,
            },
            2 => Revision::Route(Box::new(self.route(strings)?)),
            3 => Revision::Confirmed {
                at_ms: self.time()?,
            },
            _ => Revision::Told {
                at_ms: self.time()?,
                proof_count: self.small()?,
            },
        })
    }

    fn embedding(&mut self, strings: &[&str]) -> Read<Embedding> {
        Ok(Embedding {
            model_id: ModelId(self.string(strings)?.to_owned()),
            head_id: HeadId(self.string(strings)?.to_owned()),
            scale: self.float()?,
            vector: {
                let length = self.length()?;
                let vector = self.take(length)?;
                vector.iter().map(|byte| byte.cast_signed()).collect()
            },
            features: self.list(4, Bytes::float)?,
        })
    }

    fn scope(&mut self, strings: &[&str]) -> Read<Scope> {
        Ok(Scope {
            user: self.name(strings)?,
            project: self.optional_name(strings)?,
            thread: self.optional_name(strings)?,
            agent: self.optional_name(strings)?,
        })
    }

    fn record(&mut self, strings: &[&str]) -> Read<Record> {
        let owned = |bytes: &mut Self| bytes.text().map(str::to_owned);
        Ok(Record {
            id: self.id()?,
            scope: self.scope(strings)?,
            text: owned(self)?,
            layer: self.word()?,
            route: self.route(strings)?,
            subject: self.word()?,
            attribute: self.optional(owned)?,
            value: self.optional(owned)?,
            times: Times {
                told_ms: self.time()?,
                utc_offset_min: self.signed(16)? as i16,
                valid_from_ms: self.optional(Bytes::time)?,
                valid_to_ms: self.optional(Bytes::time)?,
            },
            status: self.word()?,
            supersedes: self.list(18, |bytes| {
                Ok(Supersedes {
                    id: bytes.id()?,
                    kind: bytes.word()?,
                    why: owned(bytes)?,
                })
            })?,
            evidence: self.list(17, |bytes| {
                Ok(Evidence {
                    id: bytes.id()?,
                    quote: owned(bytes)?,
                })
            })?,
            provenance: Provenance {
                role: self.word()?,
                thread: self.optional_name(strings)?,
                turn: self.optional_name(strings)?,
                statement: self.number(16)? as u16,
            },
            confirmed_ms: self.optional(Bytes::time)?,
            proof_count: self.small()?,
        })
    }

    fn route(&mut self, strings: &[&str]) -> Read<Route> {
        Ok(Route {
            grade: self.word()?,
            tier: self.word()?,
            priority: self.float()?,
            severity: self.word()?,
            domain: self.word()?,
            affects: self.list(1, Bytes::word)?,
            ttl: match self.small()? {
                0 => Ttl::Permanent,
                1 => Ttl::UntilChanged,
                2 => Ttl::Dated {
                    until_ms: self.time()?,
                },
                3 => Ttl::Session {
                    until_ms: self.time()?,
                },
                _ => return Err("kind of ttl"),
            },
            score: self.float()?,
            reasons: self.list(6, |bytes| {
                Ok(Reason {
                    signal: bytes.string(strings)?.to_owned(),
                    matched: bytes.text()?.to_owned(),
                    weight: bytes.float()?,
                })
            })?,
            stage: self.word()?,
            judgement: self.word()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use foremind_types::Change;

    use super::*;
    use crate::common::{every_change, record};
    use crate::format::{encode_entries, encode_profile, oracle};

    const ROUNDS: usize = 20_000;

    /// Numbers that look random, always the same.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            // Knuth, MMIX.
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % sides
        }
    }

    /// A few bytes of `plain` altered, taken out or put in, most often to what means something.
    fn altered(plain: &[u8], dice: &mut Dice) -> Vec<u8> {
        let mut bytes = plain.to_vec();
        for _ in 0..=dice.roll(2) {
            let at = dice.roll(bytes.len().max(1)).min(bytes.len());
            let byte = match dice.roll(3) {
                0 => [0, 1, 2, 3, 0x0f, 0x10, 0x7f, 0x80, 0xff][dice.roll(9)],
                _ => dice.roll(256) as u8,
            };
            match dice.roll(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                _ if bytes.is_empty() => {}
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = byte,
            }
        }
        bytes
    }

    /// `read` and `expected` agree on whatever `altered` makes of `plain`; what they read is compared by how it is stored again.
    fn agree<T>(
        plain: &[u8],
        read: impl Fn(&[u8]) -> Read<T>,
        expected: impl Fn(&[u8]) -> Read<T>,
        stored: impl Fn(&T) -> Vec<u8>,
    ) {
        assert_eq!(stored(&read(plain).unwrap()), plain);
        let mut dice = Dice(4);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..ROUNDS {
            let bytes = altered(plain, &mut dice);
            match (read(&bytes), expected(&bytes)) {
                (Ok(read), Ok(expected)) => {
                    assert_eq!(stored(&read), stored(&expected), "{bytes:?}");
                    good += 1;
                }
                (Err(_), Err(_)) => bad += 1,
                (read, expected) => panic!(
                    "{bytes:?} reads {:?} and should {:?}",
                    read.err(),
                    expected.err()
                ),
            }
        }
        assert!(good > ROUNDS / 20 && bad > ROUNDS / 20, "{good}, {bad}");
    }

    #[test]
    fn entries_are_read_as_serde_does() {
        let mut changes = every_change();
        changes.push(Change::Keyed {
            kind: 2,
            bytes: vec![1, 2, 3],
        });
        let entry = |counter, changes| Entry {
            writer: WriterId(u64::MAX),
            counter,
            lamport: 300,
            at_ms: -1,
            changes,
        };
        let entries = [entry(0, changes), entry(1, Vec::new())];
        let plain = encode_entries(&entries).unwrap();
        assert_eq!(decode_entries(&plain).unwrap(), entries);
        agree(&plain, decode_entries, oracle::decode_entries, |entries| {
            encode_entries(entries).unwrap()
        });
    }

    #[test]
    fn profiles_are_read_as_serde_does() {
        let heard = |number| Heard {
            record: record(number, "Ich vertrage keine Nüsse"),
            heard_ms: 1_795_910_400_000,
        };
        let plain = encode_profile(&[heard(1), heard(2)]).unwrap();
        agree(&plain, decode_profile, oracle::decode_profile, |records| {
            encode_profile(records).unwrap()
        });
    }

    #[test]
    fn manifests_are_read_as_serde_does() {
        let place = |generation| v1::Place {
            generation,
            commit: [7; 16],
            ordinal: u32::MAX,
            chunks: 1,
            bytes: 100,
        };
        let run = |first_sequence| v1::Run {
            level: 1,
            first_sequence,
            last_sequence: first_sequence + 299,
            place: place(first_sequence),
        };
        let manifest = v1::Manifest {
            last_sequence: 600,
            runs: vec![run(1), run(301)],
            derived: vec![v1::Derived {
                kind: 1,
                at_sequence: 600,
                place: place(u64::MAX),
            }],
            garbage: vec![place(3)],
        };
        let plain = postcard::to_allocvec(&manifest).unwrap();
        agree(
            &plain,
            decode_manifest,
            oracle::decode_manifest,
            |manifest| postcard::to_allocvec(manifest).unwrap(),
        );
    }
}

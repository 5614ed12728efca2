//! Range asymmetric numeral systems: an entropy coder for 8-bit symbols with one static table.
//!
//! After J. Duda, "Asymmetric numeral systems" (arXiv:1311.2540) and F. Giesen, "Interleaved entropy coders"
//! (arXiv:1402.3392): 32-bit states, words of 16 bits, frequencies that add up to 4096. Symbol `i` belongs to state
//! `i % LANES`; the states do not wait for each other, which is what makes decoding fast on one core.
//!
//! A run is the states (u32 each) and then the words (u16 each), all little-endian, in the order of decoding.
//! Decoding ends with every state at [`START`] and no word left, or the run was altered.

/// Bits of a frequency.
const BITS: u32 = 12;
const TOTAL: u32 = 1 << BITS;
/// Where an encoder starts and a decoder ends; states stay in `START..2^32`.
const START: u32 = 1 << 16;

/// Frequencies of the symbols `first..first + frequencies.len()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    first: i8,
    frequencies: Vec<u16>,
    /// By slot: frequency - 1 (bits 20..32), slot - start of the symbol (8..20), symbol (0..8).
    slots: Box<[u32; TOTAL as usize]>,
}

impl Model {
    /// The best table for symbols that occur so often, from the most negative symbol `first` on. `None` when none occurs.
    pub(crate) fn fitting(first: i8, counts: &[u64]) -> Option<Self> {
        let all: u64 = counts.iter().sum();
        if all == 0 || counts.len() > 256 {
            return None;
        }
        let share = |count: u64| match count {
            0 => 0,
            _ => ((count * u64::from(TOTAL) + all / 2) / all).max(1) as u16,
        };
        let mut frequencies: Vec<u16> = counts.iter().map(|count| share(*count)).collect();
        // What rounding left over or took too much goes to the symbols that it costs least: the most frequent.
        loop {
            let sum: u32 = frequencies.iter().map(|f| u32::from(*f)).sum();
            let largest = frequencies.iter_mut().max()?;
            match sum.cmp(&TOTAL) {
                core::cmp::Ordering::Equal => break,
                core::cmp::Ordering::Less => *largest += 1,
                core::cmp::Ordering::Greater => *largest -= 1,
            }
        }
        Self::new(first, frequencies)
    }

    /// A table; `None` unless its frequencies add up to 4096 and its symbols fit an i8.
    pub(crate) fn new(first: i8, frequencies: Vec<u16>) -> Option<Self> {
        let last = i32::from(first) + frequencies.len() as i32 - 1;
        let sum: u32 = frequencies.iter().map(|f| u32::from(*f)).sum();
        if sum != TOTAL || last > i32::from(i8::MAX) {
            return None;
        }
        let mut slots = vec![0; TOTAL as usize];
        let mut at = 0;
        for (symbol, frequency) in (i32::from(first)..).zip(&frequencies) {
            let frequency = u32::from(*frequency);
            for offset in 0..frequency {
                slots[at] = ((frequency - 1) << 20) | (offset << 8) | (symbol & 255) as u32;
                at += 1;
            }
        }
        Some(Self {
            first,
            frequencies,
            slots: slots.into_boxed_slice().try_into().ok()?,
        })
    }

    /// The most negative symbol.
    pub(crate) fn first(&self) -> i8 {
        self.first
    }

    /// Frequencies from [`Model::first`] on.
    pub(crate) fn frequencies(&self) -> &[u16] {
        &self.frequencies
    }

    /// Codes symbols as a run; `None` when the table lacks one of them.
    pub(crate) fn encode<const LANES: usize>(&self, symbols: &[i8]) -> Option<Vec<u8>> {
        let mut starts = Vec::with_capacity(self.frequencies.len());
        let mut start = 0;
        for frequency in &self.frequencies {
            starts.push(start);
            start += u32::from(*frequency);
        }
        let mut states = [START; LANES];
        let mut words = Vec::with_capacity(symbols.len() / 2);
        for (index, symbol) in symbols.iter().enumerate().rev() {
            let of = usize::try_from(i32::from(*symbol) - i32::from(self.first)).ok()?;
            let frequency = u32::from(*self.frequencies.get(of)?);
            if frequency == 0 {
                return None;
            }
            let state = &mut states[index % LANES];
            if u64::from(*state) >= u64::from(frequency) << 20 {
                words.push(*state as u16);
                *state >>= 16;
            }
            *state = ((*state / frequency) << BITS) + *state % frequency + starts[of];
        }
        let mut run = Vec::with_capacity(4 * LANES + 2 * words.len());
        run.extend(states.iter().flat_map(|state| state.to_le_bytes()));
        run.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
        Some(run)
    }

    /// Decodes a run of exactly `symbols.len()` symbols; false, with anything in `symbols`, when it is not one.
    pub(crate) fn decode<const LANES: usize>(&self, run: &[u8], symbols: &mut [i8]) -> bool {
        let Some((head, rest)) = run.split_at_checked(4 * LANES) else {
            return false;
        };
        let (words, odd) = rest.as_chunks::<2>();
        if !odd.is_empty() {
            return false;
        }
        let mut states = [0; LANES];
        for (state, bytes) in states.iter_mut().zip(head.as_chunks::<4>().0) {
            *state = u32::from_le_bytes(*bytes);
        }
        let mut at = 0;
        let mut step = |state: &mut u32| {
            let slot = self.slots[(*state & (TOTAL - 1)) as usize];
            *state = ((slot >> 20) + 1)
                .wrapping_mul(*state >> BITS)
                .wrapping_add((slot >> 8) & (TOTAL - 1));
            // Past the end zeros are read; the check at the end then fails, because `at` has run past too.
            let word = words.get(at).map_or(0, |word| u16::from_le_bytes(*word));
            let low = *state < START;
            *state = if low {
                (*state << 16) | u32::from(word)
            } else {
                *state
            };
            at += usize::from(low);
            slot as i8
        };
        let (whole, tail) = symbols.as_chunks_mut::<LANES>();
        for chunk in whole {
            for (symbol, state) in chunk.iter_mut().zip(&mut states) {
                *symbol = step(state);
            }
        }
        for (symbol, state) in tail.iter_mut().zip(&mut states) {
            *symbol = step(state);
        }
        at == words.len() && states == [START; LANES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(symbols: &[i8]) -> Vec<u64> {
        let mut counts = vec![0; 256];
        for symbol in symbols {
            counts[(i32::from(*symbol) + 128) as usize] += 1;
        }
        counts
    }

    /// Symbols of a bell shape, width about `spread`.
    fn bell(length: usize, spread: i32, seed: u64) -> Vec<i8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i32
        };
        (0..length)
            .map(|_| {
                (0..4)
                    .map(|_| next() % (2 * spread + 1) - spread)
                    .sum::<i32>()
                    / 2
            })
            .map(|sum| sum.clamp(-127, 127) as i8)
            .collect()
    }

    fn round_trip<const LANES: usize>(symbols: &[i8]) -> usize {
        let model = Model::fitting(i8::MIN, &counts(symbols)).unwrap();
        let run = model.encode::<LANES>(symbols).unwrap();
        let mut decoded = vec![0; symbols.len()];
        assert!(model.decode::<LANES>(&run, &mut decoded));
        assert_eq!(decoded, symbols);
        run.len()
    }

    #[test]
    fn symbols_come_back() {
        for length in [1, 2, 7, 8, 9, 383, 384, 5000] {
            for spread in [1, 7, 60, 127] {
                let symbols = bell(length, spread, length as u64);
                round_trip::<1>(&symbols);
                round_trip::<2>(&symbols);
                round_trip::<8>(&symbols);
            }
        }
        round_trip::<8>(&[-128; 1000]);
        round_trip::<8>(&(0..=255).map(|x| x as u8 as i8).collect::<Vec<_>>());
    }

    #[test]
    fn a_run_is_as_long_as_its_entropy_and_little_more() {
        let symbols = bell(100_000, 30, 3);
        let share = |count: u64| count as f64 / symbols.len() as f64;
        let bits: f64 = counts(&symbols)
            .iter()
            .filter(|count| **count > 0)
            .map(|count| -(*count as f64) * share(*count).log2())
            .sum();
        let bytes = round_trip::<8>(&symbols) as f64;
        assert!(
            bytes < bits / 8.0 * 1.003 + 32.0,
            "{bytes} bytes for {bits} bits"
        );
    }

    #[test]
    fn altered_runs_are_refused_or_decode_to_something() {
        let symbols = bell(3000, 20, 4);
        let model = Model::fitting(i8::MIN, &counts(&symbols)).unwrap();
        let run = model.encode::<8>(&symbols).unwrap();
        let mut decoded = vec![0; symbols.len()];
        for cut in [0, 1, 31, 32, 33, run.len() - 2, run.len() - 1] {
            assert!(
                !model.decode::<8>(&run[..cut], &mut decoded),
                "cut to {cut}"
            );
        }
        let longer = [&run[..], &[0, 0]].concat();
        assert!(!model.decode::<8>(&longer, &mut decoded));
        let mut accepted = 0;
        for at in 0..run.len() {
            let mut altered = run.clone();
            altered[at] ^= 1 << (at % 8);
            if model.decode::<8>(&altered, &mut decoded) {
                accepted += 1;
                assert_ne!(decoded, symbols);
            }
        }
        // The states at the end catch all but about one in 2^16; the file's checksum catches the rest.
        assert!(accepted <= 2, "{accepted} of {}", run.len());
    }

    #[test]
    fn unsound_tables_are_refused() {
        assert!(Model::new(0, vec![4095]).is_none());
        assert!(Model::new(0, vec![4096]).is_some());
        assert!(Model::new(127, vec![4095, 1]).is_none());
        assert!(Model::new(0, vec![u16::MAX; 3]).is_none());
        assert!(Model::fitting(0, &[0, 0]).is_none());
        assert!(
            Model::fitting(0, &[1, 0, 1])
                .unwrap()
                .encode::<1>(&[1])
                .is_none()
        );
    }
}

use blake3::{Hasher, OutputReader};

/// Context of the derivation; see docs/FORMAT.md.
const CONTEXT: &str = "foremind step entropy 1";

/// The random bytes of one step, drawn one after the other from a BLAKE3 XOF over the host's entropy, so
/// that no two uses (nonces, commit ids, record ids) ever share an output.
pub struct Draws(OutputReader);

impl Draws {
    /// Draws for one step. `instance` and `step` name the step among all steps of an open memory: a host
    /// that repeats its entropy by mistake then still gets other nonces within that opening.
    #[must_use]
    pub fn new(entropy: &[u8; 32], instance: u64, step: u64) -> Self {
        let mut hasher = Hasher::new_derive_key(CONTEXT);
        hasher.update(entropy);
        hasher.update(&instance.to_le_bytes());
        hasher.update(&step.to_le_bytes());
        Self(hasher.finalize_xof())
    }

    /// The next `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_is_drawn_twice() {
        let mut draws = Draws::new(&[7; 32], 1, 1);
        let drawn: Vec<[u8; 24]> = (0..1_000).map(|_| draws.bytes()).collect();
        let distinct: std::collections::BTreeSet<_> = drawn.iter().collect();
        assert_eq!(distinct.len(), drawn.len());
    }

    #[test]
    fn steps_instances_and_entropy_separate_streams() {
        let first = |entropy, instance, step| -> [u8; 32] {
            Draws::new(&[entropy; 32], instance, step).bytes()
        };
        let all = [
            first(1, 1, 1),
            first(2, 1, 1),
            first(1, 2, 1),
            first(1, 1, 2),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}

use foremind_types::Ambient;

/// A clock that advances one second a step, and entropy from a seed.
#[derive(Clone, Debug)]
pub struct SeededAmbient {
    seed: u64,
    steps: u64,
    now_ms: i64,
    step_ms: i64,
}

impl SeededAmbient {
    /// Starts on 2026-11-29, 00:00 UTC. Two seeds never give the same entropy.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            steps: 0,
            now_ms: 1_795_910_400_000,
            step_ms: 1_000,
        }
    }

    /// From now on the clock stands at a time, until it is advanced.
    pub fn stand_at(&mut self, now_ms: i64) {
        (self.now_ms, self.step_ms) = (now_ms, 0);
    }

    /// Lets time pass.
    pub fn advance_ms(&mut self, ms: i64) {
        self.now_ms += ms;
    }

    /// What the next step is given.
    pub fn tick(&mut self) -> Ambient {
        self.steps += 1;
        self.now_ms += self.step_ms;
        let mut hasher = blake3::Hasher::new_derive_key("foremind testkit seeded entropy");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&self.steps.to_le_bytes());
        Ambient {
            now_ms: self.now_ms,
            utc_offset_min: 0,
            entropy: *hasher.finalize().as_bytes(),
        }
    }
}

/// A budget of work: how many postings and vector rows a search may still look at. Time is not asked, since the clocks of
/// some hosts stand still while something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    left: u64,
    short: bool,
}

impl Work {
    /// Postings that cost about as much as one row of a vector table.
    pub const ROW: u64 = 4;

    /// So many units: a posting is one, a row [`Work::ROW`].
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self {
            left: units,
            short: false,
        }
    }

    /// Without end.
    #[must_use]
    pub fn unbounded() -> Self {
        Self::new(u64::MAX)
    }

    /// Whether something had to be left undone.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Takes `units` if there are so many left.
    pub(crate) fn take(&mut self, units: u64) -> bool {
        match self.left.checked_sub(units) {
            Some(left) => self.left = left,
            None => self.short = true,
        }
        !self.short
    }
}

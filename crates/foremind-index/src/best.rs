use foremind_types::RecordId;

/// Tells of a place whether it may be found, and which record it is: ties go by id, for places differ between hosts.
pub type Sees<'s> = &'s dyn Fn(u32) -> Option<RecordId>;

/// What was kept of a place.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) score: f32,
    pub(crate) id: RecordId,
    pub(crate) place: u32,
    /// A number that goes with it.
    pub(crate) beside: f32,
}

/// The best few of many scores: highest first, ties by id.
pub(crate) struct Best {
    pub(crate) kept: Vec<Kept>,
    limit: usize,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
        }
    }

    fn last(&self) -> Option<&Kept> {
        self.kept.last().filter(|_| self.kept.len() >= self.limit)
    }

    /// Whether a score that is about so high, before it is quantised, may be among the best.
    pub(crate) fn may_keep(&self, about: f32) -> bool {
        self.last().is_none_or(|last| about > last.score - 1e-3)
    }

    /// Keeps a score if it is among the best. `sees` is only asked then: of a hundred thousand scores that is a few
    /// hundred times.
    pub(crate) fn offer(&mut self, score: f32, place: u32, beside: f32, sees: Sees<'_>) {
        if self.limit == 0 || self.last().is_some_and(|last| last.score > score) {
            return;
        }
        let Some(id) = sees(place) else {
            return;
        };
        let before = |kept: &Kept| kept.score.total_cmp(&score).then(id.cmp(&kept.id)).is_gt();
        if self.last().is_some_and(before) {
            return;
        }
        let at = self.kept.partition_point(before);
        self.kept.truncate(self.limit - 1);
        self.kept.insert(
            at,
            Kept {
                score,
                id,
                place,
                beside,
            },
        );
    }
}

use foremind_types::RecordId;

/// The best few of many scores: highest first, ties by id.
pub(crate) struct Best {
    /// Score, record, and a number that goes with it.
    pub(crate) kept: Vec<(f32, RecordId, f32)>,
    limit: usize,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
        }
    }

    /// Whether a score that is about so high, before it is quantised, may be among the best.
    pub(crate) fn may_keep(&self, about: f32) -> bool {
        let last = self.kept.last().filter(|_| self.kept.len() >= self.limit);
        last.is_none_or(|last| about > last.0 - 1e-3)
    }

    /// Keeps a score if it is among the best. `accepts` is only asked then: of a hundred thousand scores that is a few
    /// hundred times.
    pub(crate) fn offer(
        &mut self,
        score: f32,
        id: RecordId,
        beside: f32,
        accepts: &dyn Fn(RecordId) -> bool,
    ) {
        let before =
            |kept: &(f32, RecordId, f32)| kept.0.total_cmp(&score).then(id.cmp(&kept.1)).is_gt();
        if self.kept.len() >= self.limit && self.kept.last().is_none_or(before) || !accepts(id) {
            return;
        }
        let place = self.kept.partition_point(before);
        self.kept.insert(place, (score, id, beside));
        self.kept.truncate(self.limit);
    }
}

//! What is known of each id, at a place that stays the same while the memory is open. The indexes go by places: four bytes, and a look
//! at a list where an id would be sought.

use core::fmt::{self, Debug, Formatter};
use core::ops::{Bound, RangeBounds};

use foremind_types::pile::Pile;
use foremind_types::{Record, RecordId};

use crate::state::Slot;

/// A record and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'s> {
    pub(crate) place: u32,
    pub(crate) record: &'s Record,
}

/// Slots by place, which is the order in which their ids came, and places by id.
#[derive(Default)]
pub(crate) struct Slots {
    ids: Pile<RecordId>,
    slots: Pile<Slot>,
    /// Places in the order of their ids. Most come in order.
    order: Vec<u32>,
}

impl Slots {
    /// Number of ids.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many ids are less than `id`.
    fn rank(&self, id: RecordId) -> usize {
        match self.order.last() {
            Some(last) if self.id(*last) >= id => {
                self.order.partition_point(|place| self.id(*place) < id)
            }
            _ => self.order.len(),
        }
    }

    /// The id at a place.
    pub(crate) fn id(&self, place: u32) -> RecordId {
        self.ids[place as usize]
    }

    /// Where an id is.
    pub(crate) fn place(&self, id: RecordId) -> Option<u32> {
        let place = *self.order.get(self.rank(id))?;
        (self.id(place) == id).then_some(place)
    }

    /// Where an id is, in a slot without content if it is new.
    pub(crate) fn place_for(&mut self, id: RecordId) -> u32 {
        let rank = self.rank(id);
        if let Some(known) = self.order.get(rank)
            && self.id(*known) == id
        {
            return *known;
        }
        let place = self.ids.len() as u32;
        self.ids.push(id);
        self.slots.push(Slot::default());
        self.order.insert(rank, place);
        place
    }

    pub(crate) fn get(&self, id: RecordId) -> Option<&Slot> {
        Some(self.at(self.place(id)?))
    }

    pub(crate) fn at(&self, place: u32) -> &Slot {
        &self.slots[place as usize]
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Slot {
        &mut self.slots[place as usize]
    }

    /// The record at a place, unless it is erased or was not told yet.
    pub(crate) fn record(&self, place: u32) -> Option<At<'_>> {
        let record = self.at(place).record()?;
        Some(At { place, record })
    }

    /// Places in the order of their ids.
    pub(crate) fn places(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.order.iter().copied()
    }

    /// Slots by id.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (RecordId, &Slot)> {
        self.places().map(|place| (self.id(place), self.at(place)))
    }

    /// Places of some ids, in the order of these.
    pub(crate) fn range(
        &self,
        ids: impl RangeBounds<RecordId>,
    ) -> impl DoubleEndedIterator<Item = u32> {
        let through = |id: &RecordId| {
            let rank = self.rank(*id);
            let known = self.order.get(rank);
            rank + usize::from(known.is_some_and(|place| self.id(*place) == *id))
        };
        let from = match ids.start_bound() {
            Bound::Included(id) => self.rank(*id),
            Bound::Excluded(id) => through(id),
            Bound::Unbounded => 0,
        };
        let to = match ids.end_bound() {
            Bound::Included(id) => through(id),
            Bound::Excluded(id) => self.rank(*id),
            Bound::Unbounded => self.order.len(),
        };
        let range = self.order.get(from..to).unwrap_or_default();
        range.iter().copied()
    }

    /// Puts a place among others that are in the order of their ids.
    pub(crate) fn put(&self, places: &mut Vec<u32>, place: u32) {
        if let Err(at) = self.find(places, place) {
            places.insert(at, place);
        }
    }

    /// Takes it out.
    pub(crate) fn take(&self, places: &mut Vec<u32>, place: u32) {
        if let Ok(at) = self.find(places, place) {
            places.remove(at);
        }
    }

    fn find(&self, places: &[u32], place: u32) -> Result<usize, usize> {
        let id = self.id(place);
        match places.last() {
            Some(last) if self.id(*last) >= id => {
                places.binary_search_by(|other| self.id(*other).cmp(&id))
            }
            _ => Err(places.len()),
        }
    }
}

impl Debug for Slots {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn id(n: u64) -> RecordId {
        RecordId::new(n as i64, [0; 10])
    }

    #[test]
    fn ids_are_found_in_their_order_whatever_order_they_come_in() {
        let mut slots = Slots::default();
        let mut known: BTreeMap<RecordId, u32> = BTreeMap::new();
        assert_eq!((slots.len(), slots.place(id(3))), (0, None));
        // A full cycle modulo a prime, twice.
        for n in (0..400_u64).map(|n| n * 7_919 % 211) {
            let place = slots.place_for(id(n));
            assert_eq!(*known.entry(id(n)).or_insert(place), place);
            assert_eq!(slots.id(place), id(n));
        }
        assert_eq!(slots.len(), known.len());
        assert!(slots.places().eq(known.values().copied()));
        assert!(
            slots
                .iter()
                .rev()
                .map(|(id, _)| id)
                .eq(known.keys().rev().copied())
        );
        for (from, to) in [(0, 0), (0, 211), (17, 90), (210, 400), (300, 400)] {
            let (from, to) = (id(from), id(to));
            let expected = known.range(from..to).map(|(_, place)| *place);
            assert!(slots.range(from..to).eq(expected));
            let expected = known.range((Bound::Excluded(from), Bound::Unbounded));
            let expected = expected.map(|(_, place)| *place);
            assert!(
                slots
                    .range((Bound::Excluded(from), Bound::Unbounded))
                    .eq(expected)
            );
            let expected = known.range(..=to).rev().map(|(_, place)| *place);
            assert!(slots.range(..=to).rev().eq(expected));
        }
    }

    #[test]
    fn places_stand_in_the_order_of_their_ids() {
        let mut slots = Slots::default();
        let mut places = Vec::new();
        for n in [5, 2, 9, 7, 2] {
            let place = slots.place_for(id(n));
            slots.put(&mut places, place);
        }
        let ids = |places: &[u32]| -> Vec<RecordId> {
            places.iter().map(|place| slots.id(*place)).collect()
        };
        assert_eq!(ids(&places), [id(2), id(5), id(7), id(9)]);
        for n in [5, 5, 9] {
            slots.take(&mut places, slots.place(id(n)).unwrap());
        }
        assert_eq!(ids(&places), [id(2), id(7)]);
    }
}

//! Maps and sets as sorted lists. The standard library's trees are compiled anew for each pair of types, 5 KB of wasm each; what
//! holds up to some thousands, or grows at its end, is as quick in a list, for a fifth of the code.

use core::borrow::Borrow;

/// A map as a sorted list. Insertion other than at the end moves what comes after.
pub use litemap::LiteMap as SmallMap;

/// A set as a sorted list; see [`SmallMap`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SmallSet<T>(Vec<T>);

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an item; tells whether it is new.
    pub fn insert(&mut self, item: T) -> bool {
        // Most come in order.
        let place = match self.0.last() {
            Some(last) if *last >= item => self.0.binary_search(&item),
            _ => Err(self.0.len()),
        };
        if let Err(at) = place {
            self.0.insert(at, item);
        }
        place.is_err()
    }

    /// Takes an item out; tells whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let place = self.place(item);
        if let Ok(at) = place {
            self.0.remove(at);
        }
        place.is_ok()
    }

    /// Whether an item is there.
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.place(item).is_ok()
    }

    fn place<Q: Ord + ?Sized>(&self, item: &Q) -> Result<usize, usize>
    where
        T: Borrow<Q>,
    {
        self.0.binary_search_by(|one| one.borrow().cmp(item))
    }

    /// The items that both have, in order.
    pub fn intersection<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = &'s T> {
        self.0.iter().filter(|item| other.contains(*item))
    }

    /// Whether they have no item in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).next().is_none()
    }

    /// Whether `other` has all items.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|item| other.contains(item))
    }
}

impl<T> SmallSet<T> {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The items in order.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The first in order.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.0.first()
    }

    /// Keeps what `keeps` says.
    pub fn retain(&mut self, keeps: impl FnMut(&T) -> bool) {
        self.0.retain(keeps);
    }
}

impl<T: Ord> Extend<T> for SmallSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<T: Ord> FromIterator<T> for SmallSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = Self::default();
        set.extend(items);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for SmallSet<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> IntoIterator for SmallSet<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'s, T> IntoIterator for &'s SmallSet<T> {
    type Item = &'s T;
    type IntoIter = core::slice::Iter<'s, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_is_what_a_tree_is() {
        let (mut ours, mut theirs) = (SmallSet::new(), BTreeSet::new());
        for n in 0..200_u32 {
            let item = n * 7_919 % 61;
            assert_eq!(ours.insert(item), theirs.insert(item));
            let gone = n * 31 % 61;
            assert_eq!(ours.remove(&gone), theirs.remove(&gone));
            assert_eq!(ours.contains(&n), theirs.contains(&n));
            assert!(ours.iter().eq(&theirs));
        }
        let few: SmallSet<u32> = [5, 3, 5, 9].into();
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [3, 5, 9]);
        assert!(few.is_subset(&[9, 5, 3, 1].into()) && !few.is_subset(&[3, 5].into()));
        assert!(few.is_disjoint(&[4].into()) && !few.is_disjoint(&[4, 9].into()));
    }
}

//! A list that grows without moving what it holds.

use core::ops::{Index, IndexMut};

/// Bytes of a chunk: large enough that a search runs through it, small beside a memory of any size.
const CHUNK_BYTES: usize = 32 * 1024;

/// A list in chunks. A `Vec` that grows takes a new place before it leaves the old one, which is twice its bytes at that moment; the
/// memory of a wasm module never shrinks again, so that moment would count for good.
#[derive(Clone, Debug)]
pub struct Pile<T>(Vec<Vec<T>>);

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Pile<T> {
    /// Items of a chunk, a power of two.
    const CHUNK: usize = 1 << (CHUNK_BYTES / size_of::<T>()).ilog2();

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        // All chunks but the last are full.
        let last = self.0.last().map_or(0, Vec::len);
        self.0.len().saturating_sub(1) * Self::CHUNK + last
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if self.0.last().is_none_or(|last| last.len() == Self::CHUNK) {
            // Only the first one grows by itself, for memories that stay small.
            let room = if self.0.is_empty() { 0 } else { Self::CHUNK };
            self.0.push(Vec::with_capacity(room));
        }
        if let Some(last) = self.0.last_mut() {
            last.push(item);
        }
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.0.last_mut()?;
        let item = last.pop();
        if last.is_empty() {
            self.0.pop();
        }
        item
    }

    /// The item at a place.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / Self::CHUNK)?.get(at % Self::CHUNK)
    }

    /// The item at a place, to be changed.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at / Self::CHUNK)?.get_mut(at % Self::CHUNK)
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.0.last()?.last()
    }

    /// The items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// The items in runs that lie side by side.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = &[T]> {
        self.0.iter().map(Vec::as_slice)
    }
}

/// # Panics
/// Beyond the end, as a slice does.
impl<T> Index<usize> for Pile<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.0[at / Self::CHUNK][at % Self::CHUNK]
    }
}

impl<T> IndexMut<usize> for Pile<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.0[at / Self::CHUNK][at % Self::CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pile_is_what_a_list_is() {
        // Rows of 4 KiB make chunks of eight.
        let row = |n: usize| [n; 512];
        let (mut ours, mut theirs) = (Pile::default(), Vec::new());
        assert!(ours.is_empty() && ours.last().is_none());
        for n in 0..100 {
            ours.push(row(n));
            theirs.push(row(n));
            if n % 5 == 4 {
                assert_eq!(ours.pop(), theirs.pop());
            }
            assert_eq!(ours.len(), theirs.len());
            assert_eq!(ours.last(), theirs.last());
        }
        assert!(ours.iter().rev().eq(theirs.iter().rev()));
        assert!(ours.chunks().flatten().eq(theirs.iter()));
        ours[17] = row(1_000);
        *ours.get_mut(18).unwrap() = row(1_001);
        assert_eq!((ours[17][0], ours.get(18)), (1_000, Some(&row(1_001))));
        assert_eq!(ours.get(80), None);
        while let Some(item) = theirs.pop() {
            let own = ours.pop();
            assert!(theirs.len() == 17 || theirs.len() == 18 || own == Some(item));
        }
        assert!(ours.is_empty() && ours.pop().is_none());
    }
}

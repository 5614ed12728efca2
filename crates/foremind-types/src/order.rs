//! Sorting, sets and maps by few compiled lines. The standard library's sort is compiled anew for each type, 3 to 9 KB of wasm each,
//! and building a tree from an iterator sorts as well; here one sort of positions serves all.

use core::cmp::Ordering;
use std::collections::BTreeSet;

use crate::small::SmallMap;

/// Sorts stably, as [`slice::sort_by`] does. For lists of a few thousand at most: each comparison is an indirect call.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    sort_positions(&mut order, &mut |a, b| compare(&items[a], &items[b]));
    // Where each item goes; then every swap brings one to its place.
    let mut place = vec![0; order.len()];
    for (to, from) in order.iter().enumerate() {
        place[*from] = to;
    }
    for at in 0..items.len() {
        while place[at] != at {
            let to = place[at];
            items.swap(at, to);
            place.swap(at, to);
        }
    }
}

/// Sorts stably by a key, as [`slice::sort_by_key`] does. See [`sort_by`].
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// The set of some items, added one by one.
pub fn set_of<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for item in items {
        set.insert(item);
    }
    set
}

/// The map of some pairs, added one by one: of a key twice, the later one counts.
pub fn map_of<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> SmallMap<K, V> {
    let mut map = SmallMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

fn sort_positions(order: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    order.sort_by(|a, b| compare(*a, *b));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_standard_library() {
        // A full cycle modulo a prime: many lengths, keys that repeat.
        for length in [0_u32, 1, 2, 3, 7, 20, 21, 50, 1_000] {
            let items: Vec<(u32, u32)> = (0..length).map(|n| (n * 7_919 % 13, n)).collect();
            let (mut ours, mut theirs) = (items.clone(), items);
            sort_by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            assert_eq!(ours, theirs);
            sort_by(&mut ours, |a, b| b.cmp(a));
            theirs.sort_by(|a, b| b.cmp(a));
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn a_set_holds_each_item_once() {
        assert_eq!(set_of([3, 1, 3, 2]), BTreeSet::from([1, 2, 3]));
        assert_eq!(
            map_of([(2, 'a'), (1, 'b'), (2, 'c')]),
            SmallMap::from_iter([(1, 'b'), (2, 'c')])
        );
    }
}

//! Requests by the places of a device: several may begin at the same sector.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::Sector;

use crate::api::request::Direction;

/// Direction and first sector.
pub type Place = (Direction, Sector);

/// Values by place, those of one place in the order in which they came.
#[derive(Clone, Debug)]
pub struct ByPlace<T>(BTreeMap<Place, VecDeque<T>>);

impl<T> Default for ByPlace<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy> ByPlace<T> {
    /// Adds a value behind those of its place.
    pub fn add(&mut self, place: Place, value: T) {
        self.0.entry(place).or_default().push_back(value);
    }

    /// Values at a place, oldest first.
    pub fn at(&self, place: Place) -> impl Iterator<Item = T> {
        self.0.get(&place).into_iter().flatten().copied()
    }

    /// Values of the nearest place before this one that has any, oldest first.
    pub fn before(&self, (direction, sector): Place) -> impl Iterator<Item = T> {
        let nearest = self.0.range((direction, Sector(0))..(direction, sector)).next_back();
        nearest.into_iter().flat_map(|(_, values)| values).copied()
    }

    /// Takes the oldest value at a place that is wanted.
    pub fn take(&mut self, place: Place, is_wanted: impl Fn(T) -> bool) -> Option<T> {
        let values = self.0.get_mut(&place)?;
        let index = values.iter().position(|value| is_wanted(*value))?;
        let taken = values.remove(index);
        if values.is_empty() {
            self.0.remove(&place);
        }
        taken
    }

    /// Takes the oldest value at a place.
    pub fn take_oldest(&mut self, place: Place) -> Option<T> {
        self.take(place, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_one_place_are_kept_apart() {
        let place = (Direction::Read, Sector(8));
        let mut all = ByPlace::default();
        for value in [1, 2, 3] {
            all.add(place, value);
        }
        all.add((Direction::Write, Sector(4)), 4);
        assert_eq!(all.take(place, |value| value == 2), Some(2));
        assert_eq!(all.take(place, |value| value == 2), None);
        assert_eq!(all.at(place).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(all.before((Direction::Read, Sector(9))).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(all.before(place).count(), 0, "another direction is another place");
        assert_eq!(all.take_oldest(place), Some(1));
        assert_eq!(all.take_oldest(place), Some(3));
        assert_eq!(all.take_oldest(place), None);
    }
}

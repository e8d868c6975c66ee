//! Number of queues with work that have each weight: tells a symmetric scenario from an asymmetric
//! one.

/// Weights in use, ascending, each with the number of queues that have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    counts: Vec<(u32, u32)>,
}

impl Weights {
    /// One more queue of this weight.
    pub(super) fn add(&mut self, weight: u32) {
        match self.counts.binary_search_by_key(&weight, |&(weight, _)| weight) {
            Ok(place) => self.counts[place].1 += 1,
            Err(place) => self.counts.insert(place, (weight, 1)),
        }
    }

    /// One less.
    pub(super) fn remove(&mut self, weight: u32) {
        let place = self
            .counts
            .binary_search_by_key(&weight, |&(weight, _)| weight)
            .expect("only counted weights are removed");
        self.counts[place].1 -= 1;
        if self.counts[place].1 == 0 {
            self.counts.remove(place);
        }
    }

    /// Tell whether weights differ, seen from a queue of this weight (`None`: not counted): the
    /// lightest one loses nothing when it is not waited for.
    pub(super) fn vary_for(&self, weight: Option<u32>) -> bool {
        let is_lightest = weight.is_some() && self.counts.first().map(|&(w, _)| w) == weight;
        !is_lightest && self.counts.len() > 1
    }
}

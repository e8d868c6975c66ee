//! Search for free blocks: goal first, then groups by four or five criteria.
//!
//! Source: Linux fs/ext4/mballoc.c, `ext4_mb_regular_allocator` and what it calls.

use super::allocator::Allocator;
use super::groups::fragment_order;
use super::rules::MballocRules;
use crate::fs::buddy::FreeRun;

/// A group and a run in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// The group.
    pub group: u32,
    /// First block in it.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct BlockSearch {
    /// Goal: a group, and a block in it.
    pub goal: (u32, u32),
    /// Blocks wanted.
    pub count: u32,
    /// Blocks wanted before the request was shortened.
    pub count_full: u32,
    /// Blocks wanted once no list has a group for a shortened request (`ac_orig_goal_len`, which
    /// for a shared window is the request itself).
    pub count_slow: u32,
    /// Blocks that are needed.
    pub needed: u32,
    /// The goal itself is tried.
    pub tries_goal: bool,
    /// For a file's data.
    pub is_data: bool,
    /// Continues where the last stream of this inode ended.
    pub stream_of: Option<u32>,
    /// Groups that exist for this file.
    pub groups: u32,
    best: Option<FoundRun>,
    seen: u32,
    status: SearchState,
    order: Option<u32>,
    ahead: Ahead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchState {
    Continue,
    Found,
    Break,
}

/// Sets of groups whose bitmaps are read ahead: next one, and how many before it wait.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    next: u32,
    count: u32,
}

/// Criteria of the search, from the quickest (`enum criteria`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SearchCriteria {
    /// A chunk of the power of two that is wanted.
    PowerOfTwo,
    /// A group whose mean free run suffices.
    MeanRun,
    /// The same for less, but not less than needed.
    Shortened,
    /// A group with enough free blocks in all.
    EnoughFree,
    /// Anything.
    Any,
}

impl SearchCriteria {
    const fn is_quick(self) -> bool {
        matches!(self, Self::PowerOfTwo | Self::MeanRun | Self::Shortened)
    }

    const fn next(self) -> Option<Self> {
        match self {
            Self::PowerOfTwo => Some(Self::MeanRun),
            Self::MeanRun => Some(Self::Shortened),
            Self::Shortened => Some(Self::EnoughFree),
            Self::EnoughFree => Some(Self::Any),
            Self::Any => None,
        }
    }
}

impl BlockSearch {
    /// A search for `count` blocks, of which `needed` are needed.
    pub const fn new(goal: (u32, u32), count: u32, needed: u32, groups: u32) -> Self {
        Self {
            goal,
            count,
            count_full: count,
            count_slow: count,
            needed,
            tries_goal: false,
            is_data: false,
            stream_of: None,
            groups,
            best: None,
            seen: 0,
            status: SearchState::Continue,
            order: None,
            ahead: Ahead { next: 0, count: 0 },
        }
    }

    /// The best run so far is taken as it is.
    fn finish(&mut self) {
        if self.best.is_some() {
            self.status = SearchState::Found;
        }
    }

    fn best_count(&self) -> u32 {
        self.best.map_or(0, |best| best.count)
    }

    /// Compares a run with the best one (`ext4_mb_measure_extent`).
    fn measure(&mut self, rules: &MballocRules, found: FoundRun) {
        self.seen += 1;
        if found.count == self.count {
            self.best = Some(found);
            self.status = SearchState::Found;
            return;
        }
        let Some(best) = self.best else {
            self.best = Some(found);
            return;
        };
        let is_better = if best.count < self.count {
            found.count > best.count
        } else {
            found.count > self.count && found.count < best.count
        };
        if is_better {
            self.best = Some(found);
        }
        self.check_limits(rules, false);
    }

    fn check_limits(&mut self, rules: &MballocRules, is_group_done: bool) {
        if self.status == SearchState::Found {
            return;
        }
        if self.seen > rules.scan_max {
            self.status = SearchState::Break;
            return;
        }
        if self.best_count() >= self.count && (is_group_done || self.seen > rules.scan_min) {
            self.finish();
        }
    }
}

impl Allocator {
    /// Finds free blocks; `None`: there are none.
    pub(super) fn find(&mut self, search: &mut BlockSearch) -> Option<FoundRun> {
        self.try_goal(search);
        if search.status != SearchState::Found {
            self.scan_all(search);
        }
        let mut best = search.best?;
        if search.status != SearchState::Found {
            // Searched too long, or nothing sufficed: the best one, as long as it is free.
            let run = self.groups.buddy(&self.geometry, best.group).run_at(best.first, best.count);
            best.count = run.count;
        }
        best.count = best.count.min(search.count);
        if let Some(node) = search.stream_of {
            let place = node as usize % self.stream_groups.len();
            self.stream_groups[place] = best.group;
        }
        Some(best)
    }

    fn try_goal(&mut self, search: &mut BlockSearch) {
        let (group, first) = search.goal;
        if !search.tries_goal || self.groups.free(group) == 0 {
            return;
        }
        self.groups.learn(&self.geometry, group);
        let run = self.groups.buddy(&self.geometry, group).run_at(first, search.count);
        let stripe = self.rules.stripe;
        let is_aligned = stripe == 0
            || search.count != stripe
            || self.geometry.block_at(group, first).is_multiple_of(u64::from(stripe));
        if run.count >= search.count && is_aligned {
            search.best = Some(FoundRun { group, first, count: run.count });
            search.finish();
        }
    }

    fn scan_all(&mut self, search: &mut BlockSearch) {
        let bits = u32::BITS - search.count.leading_zeros();
        // `MB_DEFAULT_ORDER2_REQS`: from two blocks on.
        if bits >= 2 && bits <= self.groups.orders() && search.count.is_power_of_two() {
            search.order = Some(bits - 1);
        }
        if let Some(node) = search.stream_of {
            search.goal.0 = self.stream_groups[node as usize % self.stream_groups.len()];
        }
        let quickest = if search.order.is_some() {
            SearchCriteria::PowerOfTwo
        } else {
            SearchCriteria::MeanRun
        };
        let mut criteria = Some(quickest);
        while let Some(now) = criteria.filter(|_| search.status == SearchState::Continue) {
            criteria = self.scan(search, now);
        }
        if self.rules.reads_sets {
            self.learn_ahead(search);
        }
    }

    /// One pass over the groups; the next criteria.
    fn scan(
        &mut self,
        search: &mut BlockSearch,
        criteria: SearchCriteria,
    ) -> Option<SearchCriteria> {
        let start = if search.goal.0 < search.groups { search.goal.0 } else { 0 };
        search.ahead = Ahead { next: start, count: 0 };
        if !self.rules.is_ordered || !criteria.is_quick() {
            self.scan_in_order(search, criteria, start, search.groups);
            return criteria.next();
        }
        let linear = self.rules.linear_groups.min(search.groups);
        let start = self.scan_in_order(search, criteria, start, linear);
        if search.status != SearchState::Continue {
            return None;
        }
        self.scan_lists(search, criteria, start);
        match criteria {
            // Only data may be shortened: other requests were never made longer.
            SearchCriteria::MeanRun if !search.is_data || !self.rules.shortens => {
                Some(SearchCriteria::EnoughFree)
            }
            _ => criteria.next(),
        }
    }

    fn scan_in_order(
        &mut self,
        search: &mut BlockSearch,
        criteria: SearchCriteria,
        start: u32,
        count: u32,
    ) -> u32 {
        let mut group = start;
        for _ in 0..count {
            self.scan_group(search, criteria, group);
            if search.status != SearchState::Continue {
                break;
            }
            group = if group + 1 >= search.groups { 0 } else { group + 1 };
        }
        group
    }

    /// Groups in lists, from a group to the last one, then from the first one on.
    fn scan_lists(&mut self, search: &mut BlockSearch, criteria: SearchCriteria, start: u32) {
        let ranges = [(start, search.groups), (0, start)];
        for (from, to) in ranges.into_iter().filter(|(from, to)| from < to) {
            for (list, count) in self.lists_of(search, criteria) {
                search.count = count;
                let mut at = from;
                // A group that is only looked at stays in its list.
                while let Some(group) = match criteria {
                    SearchCriteria::PowerOfTwo => self.groups.of_largest(list, at, to),
                    _ => self.groups.of_fragment(list, at, to),
                } {
                    self.scan_group(search, criteria, group);
                    if search.status != SearchState::Continue {
                        return;
                    }
                    at = group + 1;
                }
            }
        }
        search.count = match criteria {
            SearchCriteria::Shortened => search.count_slow,
            _ => search.count_full,
        };
    }

    /// Lists to look into, and the number of blocks wanted there.
    fn lists_of(&self, search: &BlockSearch, criteria: SearchCriteria) -> Vec<(u32, u32)> {
        let orders = self.groups.orders();
        let full = search.count_full;
        match criteria {
            SearchCriteria::PowerOfTwo => {
                (search.order.unwrap_or(0)..orders).map(|list| (list, full)).collect()
            }
            SearchCriteria::MeanRun => {
                (fragment_order(full, orders)..orders).map(|list| (list, full)).collect()
            }
            _ => {
                let list = |count| (fragment_order(count, orders), count);
                self.shortened(search).map(list).collect()
            }
        }
    }

    /// Lower powers of two, down to what is needed (`ext4_mb_scan_groups_best_avail`).
    fn shortened(&self, search: &BlockSearch) -> impl Iterator<Item = u32> + use<> {
        let stripe = self.rules.stripe;
        let most = search.count_full.ilog2();
        let mut least = most.saturating_sub(self.rules.shorten_orders_max);
        if stripe > 0 && 1 << least < stripe {
            least = stripe.ilog2();
        }
        if 1 << least < search.needed {
            least = u32::BITS - search.needed.leading_zeros();
        }
        (least..=most).rev().map(move |order| {
            let count: u32 = 1 << order;
            if stripe > 0 { count.next_multiple_of(stripe) } else { count }
        })
    }

    fn scan_group(&mut self, search: &mut BlockSearch, criteria: SearchCriteria, group: u32) {
        self.read_ahead(search, group);
        if !self.is_worth_a_look(search, criteria, group) {
            return;
        }
        self.groups.learn(&self.geometry, group);
        if !self.is_good(search, criteria, group) {
            return;
        }
        if let Some(order) = search.order.filter(|_| criteria == SearchCriteria::PowerOfTwo) {
            let chunk = self.groups.buddy(&self.geometry, group).first_chunk(order);
            if let Some(FreeRun { first, count }) = chunk {
                search.best = Some(FoundRun { group, first, count });
                search.finish();
            }
            return;
        }
        let stripe = self.rules.stripe;
        if criteria.is_quick() && stripe > 0 && search.count.is_multiple_of(stripe) {
            self.scan_stripes(search, group);
        }
        if search.status == SearchState::Continue {
            self.scan_runs(search, criteria, group);
        }
    }

    /// First stripe of the volume that is free (`ext4_mb_scan_aligned`).
    fn scan_stripes(&mut self, search: &mut BlockSearch, group: u32) {
        let stripe = self.rules.stripe;
        let start = self.geometry.block_at(group, 0);
        let skip = start.next_multiple_of(u64::from(stripe)) - start;
        let buddy = self.groups.buddy(&self.geometry, group);
        let mut first = skip as u32;
        while first < buddy.blocks() {
            let run = buddy.run_at(first, stripe);
            if run.count >= stripe {
                search.best = Some(FoundRun { group, first, count: run.count });
                search.finish();
                return;
            }
            first += stripe;
        }
    }

    /// Free runs from the lowest block on (`ext4_mb_complex_scan_group`).
    fn scan_runs(&mut self, search: &mut BlockSearch, criteria: SearchCriteria, group: u32) {
        let buddy = self.groups.buddy(&self.geometry, group);
        let mut free = buddy.free();
        let mut at = buddy.first_free();
        while free > 0 && search.status == SearchState::Continue {
            at = buddy.next_free(at);
            if at >= buddy.blocks() {
                break;
            }
            if criteria.is_quick() {
                let end = buddy.next_used(at);
                if end - at < search.count {
                    free -= end - at;
                    at = end;
                    continue;
                }
            }
            let run = buddy.run_at(at, search.count);
            search.measure(&self.rules, FoundRun { group, first: run.first, count: run.count });
            at += run.count;
            free -= run.count;
        }
        search.check_limits(&self.rules, true);
    }

    /// Tell whether a group may be looked at (`ext4_mb_good_group_nolock`, before its bitmap is).
    fn is_worth_a_look(&self, search: &BlockSearch, criteria: SearchCriteria, group: u32) -> bool {
        let free = self.groups.free(group);
        if free == 0 || criteria < SearchCriteria::Any && free < search.count {
            return false;
        }
        let is_first_of_set =
            self.rules.set_groups > 1 && group.is_multiple_of(self.rules.set_groups);
        let is_skipped = self.rules.reads_sets
            && criteria.is_quick()
            && !self.groups.is_known(group)
            && !is_first_of_set
            && !self.groups.is_untouched(group);
        !is_skipped
    }

    /// Tell whether a known group satisfies a criteria (`ext4_mb_good_group`).
    fn is_good(&self, search: &BlockSearch, criteria: SearchCriteria, group: u32) -> bool {
        let Some(buddy) = self.groups.known(group).filter(|buddy| buddy.free() > 0) else {
            return false;
        };
        match criteria {
            SearchCriteria::PowerOfTwo => {
                // `EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`: the first group of a set is for directories.
                let sets = self.rules.set_groups;
                let is_reserved = search.is_data && sets >= 4 && group.is_multiple_of(sets);
                !is_reserved
                    && buddy.free() >= search.count
                    && buddy.largest_order() >= search.order
            }
            SearchCriteria::MeanRun | SearchCriteria::Shortened => {
                buddy.free() / buddy.fragments().max(1) >= search.count
            }
            SearchCriteria::EnoughFree => buddy.free() >= search.count,
            SearchCriteria::Any => true,
        }
    }

    /// Reads the bitmaps of a set ahead (`ext4_mb_might_prefetch`).
    fn read_ahead(&self, search: &mut BlockSearch, group: u32) {
        if !self.rules.reads_sets || search.ahead.next != group {
            return;
        }
        let (sets, all) = (self.rules.set_groups, self.groups.count());
        let count = if sets > 1 { sets - group % sets } else { READ_AHEAD_GROUPS };
        let count = count.min(all);
        search.ahead = Ahead { next: (group + count) % all, count };
    }

    /// Knows the groups whose bitmaps were read ahead last (`ext4_mb_prefetch_fini`).
    fn learn_ahead(&mut self, search: &BlockSearch) {
        let mut group = search.ahead.next;
        for _ in 0..search.ahead.count {
            group = group.checked_sub(1).unwrap_or(self.groups.count() - 1);
            if self.groups.free(group) > 0 {
                self.groups.learn(&self.geometry, group);
            }
        }
    }
}

/// Groups read ahead without `flex_bg` (`ext4_mb_init_backend`).
const READ_AHEAD_GROUPS: u32 = 32;

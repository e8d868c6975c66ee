//! Rules of the multi-block allocator that changed between kernels, and its tunables.
//!
//! Source: Linux fs/ext4/mballoc.{c,h}, 6.12.117 (which has the group search of 6.17) and the
//! recordings of 6.18; what older kernels did from their sources.

use crate::api::make::Kernel;

/// Groups from which a search works with ordered lists (`MB_DEFAULT_LINEAR_SCAN_THRESHOLD`).
const ORDERED_GROUPS_MIN: u32 = 16;
/// Groups that a disk looks at one after the other first (`MB_DEFAULT_LINEAR_LIMIT`).
const LINEAR_GROUPS: u32 = 4;

/// Rules and tunables of one mounted file system.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub struct MballocRules {
    /// Groups are found in lists by their largest chunk and mean fragment (`mb_optimize_scan`).
    pub is_ordered: bool,
    /// Groups looked at in order before the lists are.
    pub linear_groups: u32,
    /// A large request is shortened before a slow search (since 6.5).
    pub shortens: bool,
    /// Small files take from a processor's window even when closed (since 6.1).
    pub closed_share_window: bool,
    /// Groups whose bitmap was never looked at are passed over by the quick searches; whole sets
    /// are read ahead (since 5.8).
    pub reads_sets: bool,
    /// Places where the last stream ended, by inode number (one before 6.17).
    pub stream_goals: u32,
    /// Number of groups of a set (`flex_bg`); 1 without.
    pub set_groups: u32,
    /// Blocks of files up to here share a window (`mb_stream_req`).
    pub stream_blocks: u64,
    /// Length of a shared window (`mb_group_prealloc`).
    pub shared_window: u32,
    /// Extents looked at, at least (`mb_min_to_scan`).
    pub scan_min: u32,
    /// Extents looked at, at most (`mb_max_to_scan`).
    pub scan_max: u32,
    /// Powers of two by which a request is shortened, at most (`mb_best_avail_max_trim_order`).
    pub shorten_orders_max: u32,
    /// Blocks of a stripe of the volume below; 0: none.
    pub stripe: u32,
}

/// Circumstances that the rules depend on.
#[derive(Clone, Copy, Debug)]
pub struct RulesFor {
    /// Version of the kernel.
    pub kernel: Kernel,
    /// Number of groups.
    pub groups: u32,
    /// Groups of a set; 1 without `flex_bg`.
    pub set_groups: u32,
    /// Processors of the machine.
    pub cpus: u32,
    /// The device has a head that must travel.
    pub is_rotational: bool,
    /// Blocks of a stripe; 0: none.
    pub stripe: u32,
    /// `mb_optimize_scan=`, if typed.
    pub optimize_scan: Option<bool>,
}

impl MballocRules {
    /// The rules of a kernel.
    pub fn new(of: &RulesFor) -> Self {
        let since = |major, minor| of.kernel >= Kernel::new(major, minor);
        let can_order = since(6, 0);
        let is_ordered = can_order && of.optimize_scan.unwrap_or(of.groups >= ORDERED_GROUPS_MIN);
        let shared = 512;
        Self {
            is_ordered,
            linear_groups: if of.is_rotational { LINEAR_GROUPS } else { 0 },
            shortens: since(6, 5),
            closed_share_window: since(6, 1),
            reads_sets: since(5, 8),
            stream_goals: if since(6, 17) { of.cpus.min(of.groups.div_ceil(4)).max(1) } else { 1 },
            set_groups: of.set_groups,
            stream_blocks: 16,
            shared_window: if of.stripe > 1 {
                u32::next_multiple_of(shared, of.stripe)
            } else {
                shared
            },
            scan_min: 10,
            scan_max: 200,
            shorten_orders_max: 3,
            stripe: of.stripe,
        }
    }
}

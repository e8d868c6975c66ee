//! Record 0 over and over (`IOzone` test 4, record rewrite).

use super::Records;

/// Always record 0.
#[derive(Clone, Debug)]
pub struct Same;

impl Records for Same {
    #[inline]
    fn next(&mut self) -> u64 {
        0
    }
}

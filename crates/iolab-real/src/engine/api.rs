//! Interface of an engine: a row in a list that gives a [`Target`] its name.

use iolab_model::Target;

/// Code that is generic over the target; [`super::Engine::visit`] calls it with the engine's own.
///
/// This is how one dynamic decision per trial replaces one per op.
pub trait EngineVisitor {
    /// Answer of the code.
    type Output;

    /// Runs with the chosen target.
    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output;
}

/// Declares [`super::Engine`] from rows of `Variant = "name" => expression of a target`.
macro_rules! engines {
    ($( $(#[$meta:meta])* $Row:ident = $text:literal => $target:expr, )+) => {
        iolab_model::registry! {
            /// An engine, by name.
            pub enum Engine as "engine" {
                $( $(#[$meta])* $Row = $text, )+
            }
        }

        impl Engine {
            /// Runs `visitor` with this engine's target.
            pub fn visit<V: EngineVisitor>(self, visitor: V) -> V::Output {
                match self { $( Self::$Row => visitor.visit(&$target), )+ }
            }

            /// Tell whether it can be used here; if not, why, and what to do instead.
            ///
            /// It is tried as a trial would use it: by opening a lane, for files in `directories`.
            pub fn probe(
                self,
                directories: &[std::path::PathBuf],
            ) -> Result<(), $crate::engine::Unavailable> {
                self.visit($crate::engine::refusal::Try(directories))
            }
        }
    };
}
pub(super) use engines;

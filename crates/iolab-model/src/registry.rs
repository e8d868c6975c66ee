//! One row in one list: the macro that turns a list of variants into an enum with names.

#[doc(hidden)]
pub use {schemars, serde};

/// Declares a closed enum whose variants have names, so that adding a thing is one file and one
/// row.
///
/// The list drives parsing, error messages (which name all known rows), serde and documentation.
///
/// ```
/// iolab_model::registry! {
///     /// How water reaches the sea.
///     pub enum Stream as "stream" {
///         /// Narrow.
///         Brook = "brook",
///         /// Wide.
///         River = "river",
///     }
/// }
/// assert_eq!("river".parse::<Stream>().unwrap(), Stream::River);
/// assert!("canal".parse::<Stream>().unwrap_err().to_string().contains("brook, river"));
/// ```
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident as $kind:literal {
            $( $(#[$row_meta:meta])* $Row:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Name { $( $(#[$row_meta])* $Row, )+ }

        impl $Name {
            /// Every row, in the order of the list.
            pub const ALL: &'static [Self] = &[ $( Self::$Row, )+ ];

            /// The name people type.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$Row => $text, )+ }
            }
        }

        impl ::core::fmt::Display for $Name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::core::str::FromStr for $Name {
            type Err = $crate::error::Error;
            fn from_str(text: &str) -> ::core::result::Result<Self, $crate::error::Error> {
                match text {
                    $( $text => Ok(Self::$Row), )+
                    _ => Err($crate::error::Error::UnknownName {
                        kind: $kind,
                        name: text.to_owned(),
                        known: [$( $text ),+].join(", "),
                    }),
                }
            }
        }

        impl $crate::registry::schemars::JsonSchema for $Name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::stringify!($Name).into()
            }

            fn json_schema(
                _: &mut $crate::registry::schemars::SchemaGenerator,
            ) -> $crate::registry::schemars::Schema {
                $crate::registry::schemars::json_schema!({
                    "type": "string",
                    "description": ::std::concat!("Name of a ", $kind, "."),
                    "enum": [ $( $text ),+ ],
                })
            }
        }

        impl $crate::registry::serde::Serialize for $Name {
            fn serialize<S: $crate::registry::serde::Serializer>(
                &self,
                s: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                s.serialize_str(self.name())
            }
        }

        impl<'de> $crate::registry::serde::Deserialize<'de> for $Name {
            fn deserialize<D: $crate::registry::serde::Deserializer<'de>>(
                d: D,
            ) -> ::core::result::Result<Self, D::Error> {
                type Text<'de> = ::std::borrow::Cow<'de, str>;
                let text = <Text<'de> as $crate::registry::serde::Deserialize>::deserialize(d)?;
                text.parse().map_err($crate::registry::serde::de::Error::custom)
            }
        }
    };
}

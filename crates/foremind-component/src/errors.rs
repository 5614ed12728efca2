//! Errors as they cross the border: one case for each code.

use foremind_types::{Error, ErrorCode};

use crate::bindings::exports::foremind::memory::types::Error as Case;

/// The case of an error. A code that this border does not know yet is `internal`; a test walks all codes.
pub(crate) fn case(error: Error) -> Case {
    let Error { code, message } = error;
    match code {
        ErrorCode::InvalidArgument => Case::InvalidArgument(message),
        ErrorCode::TextEmpty => Case::TextEmpty(message),
        ErrorCode::TextTooLarge => Case::TextTooLarge(message),
        ErrorCode::UnknownId => Case::UnknownId(message),
        ErrorCode::Closed => Case::Closed(message),
        ErrorCode::Aborted => Case::Aborted(message),
        ErrorCode::KeyMissing => Case::KeyMissing(message),
        ErrorCode::WrongKey => Case::WrongKey(message),
        ErrorCode::Unsupported => Case::Unsupported(message),
        ErrorCode::StorageDenied => Case::StorageDenied(message),
        ErrorCode::QuotaExceeded => Case::QuotaExceeded(message),
        ErrorCode::StorageLost => Case::StorageLost(message),
        ErrorCode::StorageFailed => Case::StorageFailed(message),
        ErrorCode::Conflict => Case::Conflict(message),
        ErrorCode::Corrupt => Case::Corrupt(message),
        ErrorCode::NewerFormat => Case::NewerFormat(message),
        ErrorCode::ModelMissing => Case::ModelMissing(message),
        ErrorCode::ModelInvalid => Case::ModelInvalid(message),
        ErrorCode::LimitReached => Case::LimitReached(message),
        _ => Case::Internal(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_a_case_of_its_own_name() {
        for code in ErrorCode::ALL {
            let shown = format!("{:?}", case(Error::new(*code, "told")));
            let pascal: String = code
                .as_str()
                .split('-')
                .map(|word| word[..1].to_uppercase() + &word[1..])
                .collect();
            assert!(shown.contains(&format!("{pascal}(\"told\")")), "{shown}");
        }
    }
}

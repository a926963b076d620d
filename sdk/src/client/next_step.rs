//! The next step after a failed call: the guide's table, as a function.

use std::time::Duration;

use parcelo_types::ErrorCode;

use super::{Error, ErrorKind, StopReason, retry_after::MAX_WAIT};

/// Pause before a request is sent again if the service asks for none: the client has already tried for as long as it
/// may, so the cause lasts longer than a moment.
const RESEND_AFTER: Duration = Duration::from_secs(5);

/// Minimum pause before that: with a shorter one, a program would send without end.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// The next step after a failed call: [`Error::next_step`].
///
/// A program that follows it never ships an order twice. See "Errors" in the [guide](crate) for the table, and "Exactly
/// once, also after a crash" for a `match` on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NextStep {
    /// Send the same request with the same idempotency key and the same API key again, not before this time has
    /// passed. Let the program go on to other work after a few times, and keep the request.
    Resend {
        /// The time that the service, or the client's own rate limiter, asks for, from a second to an hour;
        /// otherwise 5 s.
        after: Duration,
    },
    /// Do not send it: find out whether it was executed, after correcting the cause that the error's kind names, such
    /// as the API key (`Authentication`). For an order, use [`Orders::find`](crate::calls::Orders::find) with its
    /// external order id: a parcel that is not voided is the order's. For other writes, read the parcels' status, the
    /// manifest or the label.
    LookUp {
        /// The step if it was not executed.
        if_absent: IfAbsent,
    },
    /// It was executed; do not send it again. [`Error::unreadable`] has the response, which this version cannot read.
    Settled,
    /// Correct the request ([`Error::field_faults`], [`Error::known_code`]) and send it with the same idempotency
    /// key.
    Correct,
    /// Correct what surrounds the request: the API key or its rights, the address, certificates, the disk. Then send
    /// it unchanged. It was not executed: if it may have been, the step is [`LookUp`](Self::LookUp), since with
    /// another API key it would count as a new one.
    Configure,
    /// Nothing helps that a program can do: the service's response is final, or this version does not know it. Quote
    /// [`Error::request_id`] to support.
    GiveUp,
}

/// The step after a [`NextStep::LookUp`] that found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IfAbsent {
    /// It was not executed: make a new idempotency key, save it with the request, and send it.
    NewKey,
    /// It may still be executed: look again, or send it with the key that it has, not before this time has
    /// passed. If nothing can be under way then, the client refuses the key with [`NewKey`](Self::NewKey) as the step.
    Resend {
        /// The wait, at most ten minutes: no request is executed for longer.
        after: Duration,
    },
    /// It may still be executed, or was under another id: keep the request with its key, and leave it to a person.
    GiveUp,
}

/// It may have been executed, and the same request would get the same response.
const LOOK_UP: NextStep = NextStep::LookUp { if_absent: IfAbsent::GiveUp };

impl Error {
    /// Returns what to do now.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::NextStep;
    ///
    /// # let mut order = order;
    /// order.receiver.phone = "12".to_owned();
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!(error.next_step(), NextStep::Correct);
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_step(&self) -> NextStep {
        match self.kind() {
            ErrorKind::Executed => NextStep::Settled,
            ErrorKind::KeyExpired => NextStep::LookUp { if_absent: self.if_expired_and_absent() },
            // The key may belong to an earlier version of the request, with another id.
            ErrorKind::KeyReused => LOOK_UP,
            // The endpoint does not exist, so the address is wrong.
            ErrorKind::NotFound if self.known_code() == Some(ErrorCode::NotFound) => {
                self.configure()
            }
            ErrorKind::Validation | ErrorKind::NotFound => NextStep::Correct,
            ErrorKind::RateLimited => self.resend(),
            // Shipped again, the order continues with the key in the journal.
            ErrorKind::Journal if self.may_have_executed() => self.resend(),
            ErrorKind::Conflict => self.after_conflict(),
            ErrorKind::Server | ErrorKind::Network | ErrorKind::Timeout => self.after_failure(),
            ErrorKind::Decode | ErrorKind::Unexpected => self.after_unexpected_response(),
            ErrorKind::Authentication
            | ErrorKind::CountryNotAllowed
            | ErrorKind::Forbidden
            | ErrorKind::Config
            | ErrorKind::File
            | ErrorKind::Journal => self.configure(),
        }
    }

    /// Returns `Configure`, unless the request may have been executed: with another API key, or corrected, it could be
    /// executed a second time.
    fn configure(&self) -> NextStep {
        if self.may_have_executed() { LOOK_UP } else { NextStep::Configure }
    }

    fn after_unexpected_response(&self) -> NextStep {
        let is_the_services = self.body().is_some() || self.unreadable().is_some();
        // A response that is not the service's comes from another server at the address.
        if is_the_services && !self.may_have_executed() {
            NextStep::GiveUp
        } else {
            self.configure()
        }
    }

    /// Returns the step for an expired key without a parcel. The last attempt may have begun just before the key
    /// expired.
    fn if_expired_and_absent(&self) -> IfAbsent {
        self.retry_after().map_or(IfAbsent::NewKey, |after| IfAbsent::Resend { after })
    }

    fn after_conflict(&self) -> NextStep {
        match self.known_code() {
            Some(ErrorCode::IdempotencyInProgress) => self.resend(),
            _ if self.may_have_executed() => LOOK_UP,
            Some(ErrorCode::ParcelDuplicateTracking) => NextStep::Correct,
            // The client's own error, because the label was reprinted during the download.
            _ if self.body().is_none() => self.resend(),
            _ => NextStep::GiveUp,
        }
    }

    fn after_failure(&self) -> NextStep {
        match self.stop_reason() {
            Some(StopReason::Permanent | StopReason::NotRepeatable) | None
                if self.may_have_executed() =>
            {
                LOOK_UP
            }
            // An untrusted certificate, or a runtime that has ended.
            Some(StopReason::Permanent) | None if self.kind() == ErrorKind::Network => {
                NextStep::Configure
            }
            Some(StopReason::Permanent) | None => NextStep::GiveUp,
            Some(
                StopReason::NotRepeatable
                | StopReason::Attempts
                | StopReason::Budget
                | StopReason::Declined
                | StopReason::Deadline
                | StopReason::RetryAfterTooLong
                | StopReason::RateLimit
                | StopReason::KeyExpired,
            ) => self.resend(),
        }
    }

    /// Returns `Resend`, unless a request without a key may have been executed: it could be executed twice.
    fn resend(&self) -> NextStep {
        if self.may_have_executed() && self.idempotency_key().is_none() {
            return LOOK_UP;
        }
        let asked = self.retry_after().map(|asked| asked.clamp(MIN_WAIT, MAX_WAIT));
        NextStep::Resend { after: asked.unwrap_or(RESEND_AFTER) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use parcelo_types::{
        IdempotencyKey,
        model::{ErrorBody, Unreadable},
    };

    use super::{
        ErrorKind::{
            Authentication, Config, Conflict, CountryNotAllowed, Decode, Executed, File, Forbidden,
            Journal, KeyExpired, KeyReused, Network, NotFound, RateLimited, Server, Timeout,
            Unexpected, Validation,
        },
        NextStep::{Configure, Correct, GiveUp, LookUp, Settled},
        *,
    };

    const STOPS: [Option<StopReason>; 10] = [
        None,
        Some(StopReason::Permanent),
        Some(StopReason::NotRepeatable),
        Some(StopReason::Attempts),
        Some(StopReason::Budget),
        Some(StopReason::Declined),
        Some(StopReason::Deadline),
        Some(StopReason::RetryAfterTooLong),
        Some(StopReason::RateLimit),
        Some(StopReason::KeyExpired),
    ];
    const RESEND: NextStep = NextStep::Resend { after: RESEND_AFTER };
    const NEW_KEY: NextStep = LookUp { if_absent: IfAbsent::NewKey };

    fn error(kind: ErrorKind, stop: Option<StopReason>, is_unknown: bool) -> Error {
        Error::new(kind, ("no", "no")).with(|inner| {
            inner.stop_reason = stop;
            inner.may_have_executed = is_unknown;
            inner.idempotency_key = Some(IdempotencyKey::derive("test", "1"));
        })
    }

    /// Returns the step after a response with this error code.
    fn step_after(kind: ErrorKind, code: &str, is_unknown: bool) -> NextStep {
        let error = error(kind, Some(StopReason::Permanent), is_unknown);
        error.with(|inner| inner.body = Some(ErrorBody::new(code, ("no", "no")))).next_step()
    }

    /// Checks the guide's table: the step for each kind, with a known and an unknown outcome, after a call that was
    /// given up for good and after one that might continue.
    #[test]
    fn every_kind_has_a_step_for_every_stop_reason() {
        let same = |step: NextStep| std::array::from_fn(|_| step.clone());
        let table: [(&[ErrorKind], [NextStep; 4]); 11] = [
            // kinds: permanent, permanent with an unknown outcome, otherwise, otherwise with an unknown outcome
            (&[Executed], same(Settled)),
            (&[KeyExpired], same(NEW_KEY)),
            (&[KeyReused], same(LOOK_UP)),
            (&[Validation, NotFound], same(Correct)),
            (
                &[Authentication, CountryNotAllowed, Forbidden, Config, File],
                [Configure, LOOK_UP, Configure, LOOK_UP],
            ),
            (&[RateLimited], same(RESEND)),
            (&[Journal], [Configure, RESEND, Configure, RESEND]),
            (&[Conflict], [RESEND, LOOK_UP, RESEND, LOOK_UP]),
            (&[Server, Timeout], [GiveUp, LOOK_UP, RESEND, RESEND]),
            (&[Network], [Configure, LOOK_UP, RESEND, RESEND]),
            (&[Decode, Unexpected], [Configure, LOOK_UP, Configure, LOOK_UP]),
        ];
        let rows: Vec<_> = table
            .iter()
            .flat_map(|(kinds, steps)| kinds.iter().map(move |kind| (*kind, steps)))
            .collect();
        let kinds: HashSet<_> = rows.iter().map(|(kind, _)| *kind).collect();
        assert_eq!((rows.len(), kinds.len()), (18, 18), "each kind once");
        for (kind, steps) in rows {
            for stop in STOPS {
                for is_unknown in [false, true] {
                    let is_final = matches!(stop, None | Some(StopReason::Permanent));
                    let mut expected =
                        &steps[usize::from(is_unknown) + if is_final { 0 } else { 2 }];
                    if stop == Some(StopReason::NotRepeatable)
                        && is_unknown
                        && matches!(kind, Server | Network | Timeout)
                    {
                        expected = &LOOK_UP;
                    }
                    let step = error(kind, stop, is_unknown).next_step();
                    assert_eq!(&step, expected, "{kind:?} {stop:?} unknown: {is_unknown}");
                }
            }
        }
    }

    #[test]
    fn the_code_of_a_conflict_decides_the_step() {
        for code in ErrorCode::ALL.iter().filter(|code| code.status() == 409) {
            let refused = |in_doubt| step_after(Conflict, code.code(), in_doubt);
            let expected = match code {
                ErrorCode::IdempotencyInProgress => [RESEND, RESEND],
                ErrorCode::ParcelDuplicateTracking => [Correct, LOOK_UP],
                _ => [GiveUp, LOOK_UP],
            };
            assert_eq!([refused(false), refused(true)], expected, "{code}");
        }
    }

    #[test]
    fn a_missing_endpoint_is_a_configuration_error() {
        let step = |code, in_doubt| step_after(NotFound, code, in_doubt);
        assert_eq!([step("NOT_FOUND", false), step("NOT_FOUND", true)], [Configure, LOOK_UP]);
        assert_eq!(step("PARCEL_NOT_FOUND", false), Correct);
    }

    #[test]
    fn an_unknown_status_is_not_a_configuration_error() {
        let row = Unreadable::new(serde_json::json!({"new": 1}));
        let unreadable = error(Decode, Some(StopReason::Permanent), false);
        let unreadable = unreadable.with(|inner| inner.unreadable = Some(row)).next_step();
        assert_eq!([unreadable, step_after(Unexpected, "NEW", false)], [GiveUp, GiveUp]);
    }

    #[test]
    fn a_resend_waits_a_second_to_an_hour_and_needs_a_key() {
        for (asked, after) in [(0, 1), (45, 45), (3600, 3600), (99_999_999, 3600)] {
            let error = error(Server, Some(StopReason::RetryAfterTooLong), true);
            let error = error.with(|inner| inner.retry_after = Some(Duration::from_secs(asked)));
            assert_eq!(error.next_step(), NextStep::Resend { after: Duration::from_secs(after) });
        }
        for kind in [RateLimited, Server, Network, Timeout] {
            let keyless = |is_unknown| {
                let error = error(kind, Some(StopReason::Attempts), is_unknown);
                error.with(|inner| inner.idempotency_key = None).next_step()
            };
            assert_eq!([keyless(false), keyless(true)], [RESEND, LOOK_UP], "{kind:?}");
        }
    }
}

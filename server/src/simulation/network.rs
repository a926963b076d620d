//! What lies between clients and servers: a way that loses, delays, doubles and cuts off what goes over it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use fastrand::Rng;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, Request, Response, StatusCode, header::RETRY_AFTER};
use parcelo::transport::{BodyStream, Phase, Transport, TransportError};
use tokio::time::sleep;

use super::{
    answers::Answer,
    calls::{CALL, Ended, Sent},
    servers::Fleet,
    world::World,
};

/// The way of one shipper's clients.
#[derive(Debug)]
pub(super) struct Network {
    world: Arc<World>,
    fleet: Arc<Fleet>,
    shipper: usize,
    rng: Mutex<Rng>,
}

/// What happens to one exchange.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Fine,
    Refused,
    RequestLost,
    AnswerLost,
    CutMeanwhile,
    CutInBody,
    Doubled,
    Late,
    BalancerBefore(u16),
    BalancerAfter(u16),
    Stale,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    fate: Fate,
    server: usize,
    there: Duration,
    back: Duration,
    long: Duration,
}

impl Network {
    pub(super) fn new(fleet: &Arc<Fleet>, shipper: usize) -> Self {
        let world = Arc::clone(&fleet.world);
        let rng = Mutex::new(world.random("network", shipper));
        Self { world, fleet: Arc::clone(fleet), shipper, rng }
    }

    fn plan(&self) -> Plan {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = |rng: &mut Rng, most| Duration::from_millis(rng.u64(0..=most));
        let goes_wrong = rng.u32(..1_000) < self.world.options.network && !self.world.is_calm();
        let fate = match rng.u32(..11) {
            _ if self.fleet.is_cut_off() => {
                if rng.bool() {
                    Fate::Refused
                } else {
                    Fate::BalancerBefore(503)
                }
            }
            _ if !goes_wrong => Fate::Fine,
            0 => Fate::Refused,
            1 => Fate::RequestLost,
            2 | 3 => Fate::AnswerLost,
            4 => Fate::CutMeanwhile,
            5 => Fate::CutInBody,
            6 => Fate::Doubled,
            7 => Fate::Late,
            8 => Fate::BalancerBefore(rng.u16(502..=504)),
            9 => Fate::BalancerAfter(rng.u16(502..=504)),
            _ => Fate::Stale,
        };
        Plan {
            fate,
            server: rng.usize(..self.world.options.servers),
            there: millis(&mut rng, 20),
            back: millis(&mut rng, 20),
            long: millis(&mut rng, 20_000),
        }
    }

    async fn handle(
        &self,
        plan: Plan,
        request: &Request<Bytes>,
        call: u64,
    ) -> Result<Answer, TransportError> {
        sleep(plan.there).await;
        let answer = self.fleet.handle(plan.server, request, call).await;
        let answer = answer.map_err(|phase| failed(phase, "the server is gone"))?;
        sleep(plan.back).await;
        Ok(answer)
    }

    async fn exchange(&self, plan: Plan, request: Request<Bytes>, call: u64) -> Exchanged {
        let whole = |answer: Answer| Ok((answer, false));
        match plan.fate {
            Fate::Fine => self.handle(plan, &request, call).await.and_then(whole),
            Fate::Refused => Err(failed(Phase::NotSent, "refused")),
            Fate::RequestLost => {
                sleep(plan.long).await;
                Err(failed(Phase::MaybeSent, "reset"))
            }
            Fate::AnswerLost => {
                let _lost = self.handle(plan, &request, call).await?;
                sleep(plan.long).await;
                Err(failed(Phase::MaybeSent, "reset"))
            }
            Fate::CutMeanwhile => {
                // The handler is dropped with its connection.
                let cut = plan.back * 2;
                let _cut = tokio::time::timeout(cut, self.handle(plan, &request, call)).await;
                Err(failed(Phase::MaybeSent, "reset"))
            }
            Fate::CutInBody => self.handle(plan, &request, call).await.map(|answer| (answer, true)),
            Fate::Doubled => {
                let answer = self.handle(plan, &request, call).await?;
                // A proxy that repeats what was refused would make a liar of every client.
                if answer.status.is_success() {
                    let (fleet, server, later) =
                        (Arc::clone(&self.fleet), plan.server, plan.long / 4);
                    tokio::spawn(async move {
                        sleep(later).await;
                        let _unheard = fleet.handle(server, &request, 0).await;
                    });
                }
                whole(answer)
            }
            Fate::Late => {
                sleep(plan.long).await;
                self.handle(plan, &request, call).await.and_then(whole)
            }
            Fate::BalancerBefore(status) => whole(balancer(status)),
            Fate::BalancerAfter(status) => {
                let _lost = self.handle(plan, &request, call).await?;
                whole(balancer(status))
            }
            Fate::Stale => {
                if plan.long.as_millis().is_multiple_of(2) {
                    let _lost = self.handle(plan, &request, call).await?;
                }
                Err(failed(Phase::Stale, "closed"))
            }
        }
    }
}

/// An answer, and whether its body breaks off.
type Exchanged = Result<(Answer, bool), TransportError>;

impl Transport for Network {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        async move {
            let call = CALL.try_with(|call| *call).unwrap_or_default();
            let path = request.uri().path().to_owned();
            let body = request.body().clone();
            let is_keyed =
                request.method() == http::Method::GET || !path.ends_with("/sandbox/reset");
            let sent = Sent { shipper: self.shipper, call, path: &path, body: &body, is_keyed };
            self.world.sent(&sent);
            let exchanged = self.exchange(self.plan(), request, call).await;
            self.world.heard(&sent, ended(&exchanged));
            exchanged.map(|(answer, is_cut)| response(answer, is_cut))
        }
        .boxed()
    }
}

fn ended(exchanged: &Exchanged) -> Ended {
    match exchanged {
        Err(error) => Ended::Failed(error.phase()),
        Ok((answer, true)) if answer.status.is_success() => Ended::Failed(Phase::MaybeSent),
        Ok((answer, _)) => {
            let after =
                answer.headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
            Ended::Answered(answer.status.as_u16(), after.map(Duration::from_secs))
        }
    }
}

fn response(answer: Answer, is_cut: bool) -> Response<BodyStream> {
    let Answer { status, headers, body } = answer;
    let chunks = if is_cut {
        let half = body.slice(..body.len() / 2);
        vec![Ok(half), Err(failed(Phase::MaybeSent, "reset"))]
    } else {
        vec![Ok(body)]
    };
    let mut response = Response::new(stream::iter(chunks).boxed());
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

fn failed(phase: Phase, why: &'static str) -> TransportError {
    TransportError::new(phase, why)
}

fn balancer(status: u16) -> Answer {
    let body = Bytes::from_static(b"<html>the balancer's own page</html>");
    Answer { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), body }
}

/// The same request once more.
pub(super) fn clone(request: &Request<Bytes>) -> Request<Bytes> {
    let mut copy = Request::new(request.body().clone());
    (*copy.method_mut(), *copy.uri_mut()) = (request.method().clone(), request.uri().clone());
    copy.headers_mut().clone_from(request.headers());
    copy
}

/// The request as the routes take it.
pub(super) fn to_routes(request: &Request<Bytes>) -> Request<Body> {
    clone(request).map(Body::from)
}

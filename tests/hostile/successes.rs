//! Successes that would stop everybody if they were believed.

use http::Version;

use super::{call, layer, raw::Raw, read, real::client};

#[tokio::test]
async fn a_success_that_says_nothing_is_left_for_a_day_stops_nobody() {
    for fields in [
        "ratelimit: \"daily\";r=0;t=86400",
        "ratelimit: \"daily\";r=0;t=86400\r\nratelimit-policy: \"daily\";q=1000;w=86400",
        "ratelimit-limit: 1000\r\nratelimit-remaining: 0\r\nratelimit-reset: 86400",
        "retry-after: 86400",
        "retry-after: Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}");
        let server = Raw::answer(&head, "served").await;
        let layer = layer();
        let client = client(Version::HTTP_11, layer.clone());
        for _ in 0..20 {
            let reply = call(&client, &server.uri()).await;
            assert_eq!(reply.status(), 200, "{fields}");
            assert_eq!(read(reply).await, (b"served".to_vec(), false));
        }
        assert_eq!(server.requests(), 20, "{fields}");
    }
}

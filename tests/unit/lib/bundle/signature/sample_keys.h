// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key pairs that openssl made for tests only.
namespace cachewarm::bundle {

inline constexpr char kSigner[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgl31yZ+1TjL0WdUJO\n"
    "ZWAzzlknADgMo92fXtjv1Tw6q2yhRANCAASoYHlXxBLU/mTL5IpEWSIR6oAVKU97\n"
    "nawMD0k4MYGTqkKiHfzGNQszCCFG+rxKeQ+aX+pUDmQEmSzmI477JA+n\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr char kSignerPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqGB5V8QS1P5ky+SKRFkiEeqAFSlP\n"
    "e52sDA9JODGBk6pCoh38xjULMwghRvq8SnkPml/qVA5kBJks5iOO+yQPpw==\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr char kSignerOldForm[] =
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEIJd9cmftU4y9FnVCTmVgM85ZJwA4DKPdn17Y79U8OqtsoAoGCCqGSM49\n"
    "AwEHoUQDQgAEqGB5V8QS1P5ky+SKRFkiEeqAFSlPe52sDA9JODGBk6pCoh38xjUL\n"
    "MwghRvq8SnkPml/qVA5kBJks5iOO+yQPpw==\n"
    "-----END EC PRIVATE KEY-----\n";
inline constexpr char kSignerEncrypted[] =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjunDi4hqP2qQICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEEc6+WX7p+icRHgxNl35HG8EgZD1\n"
    "O4HCg5Duf8CSFVvPnsrH8qVWgkf5LvwzSvsI3lk3RTmvhAB97oR7jeDuC3PVurag\n"
    "gT+eG0GfvN/OPJzFjvNxzixbgxZIOYAq/rMRDUnDjCmclBNsHpxklOLeOQvzOFbl\n"
    "nYHbTedNpp7ZF+gQ8suXq973Rryqiad0aKfdIWcS+6Zfpyns+1oG1FAYRA8xI+8=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";
inline constexpr char kOtherSigner[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWuqgg7dqNcBvgxdO\n"
    "Id7PjTsyLdojK5H2bM+0Zg8Q21ChRANCAAQPVS3l86P99kyIFVFYoEPdw+lKDJAA\n"
    "sRjR+/kPDq1VMsxKykzpJ2YiDiXJdnhKG47QHHu1HnxJVAUcRtNhQVYB\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr char kOtherSignerPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAED1Ut5fOj/fZMiBVRWKBD3cPpSgyQ\n"
    "ALEY0fv5Dw6tVTLMSspM6SdmIg4lyXZ4ShuO0Bx7tR58SVQFHEbTYUFWAQ==\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr char kP384[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCmXoKTwWq6u5eaj7jq\n"
    "yrtKu/fDi+LVgkmcvCRJPJSQu0KSpk9pqxdApVAcl90zUsOhZANiAASXd+a7Svp4\n"
    "460qscw8O4NdBv/Oi/xV4DGDgBhpUMJVXc0CFNJylREYKO1DaKmzzZwvzJk5DRHN\n"
    "Bq0OaLZFVGSDk3nuV7MpQqMCbHJ7gSjsT+Np4Es4chGbsBP07gNLPSA=\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr char kP384Public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEl3fmu0r6eOOtKrHMPDuDXQb/zov8VeAx\n"
    "g4AYaVDCVV3NAhTScpURGCjtQ2ips82cL8yZOQ0RzQatDmi2RVRkg5N57lezKUKj\n"
    "Amxye4Eo7E/jaeBLOHIRm7AT9O4DSz0g\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr char kEd25519[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIHZQF4UkwrdZO4MCHchvsY+SOcGdYffFURj/LlhFtA1h\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr char kEd25519Public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA8IodvZD7GtUr2sVSFunxonNSaE2XiuQmIBf+4qOysE4=\n"
    "-----END PUBLIC KEY-----\n";

}  // namespace cachewarm::bundle

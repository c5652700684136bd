// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/verbs.h"

// One function for each verb; returns its name, help, options and implementation.
namespace cachewarm::cli {

Verb PackVerb();
Verb UnpackVerb();
Verb PushVerb();
Verb PullVerb();
Verb SignVerb();
Verb VerifyVerb();
Verb InspectVerb();
Verb RunVerb();
Verb LoadVerb();
Verb SaveVerb();
Verb ImportVerb();
Verb ExportVerb();
Verb ReleaseVerb();
Verb ReportVerb();
Verb GcVerb();
Verb WhyVerb();
Verb StatusVerb();
Verb LintVerb();
Verb CachesVerb();
Verb CompletionVerb();

}  // namespace cachewarm::cli

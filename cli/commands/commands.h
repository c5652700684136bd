// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/verbs.h"

// One function a file: the verb with everything it says about itself.
namespace cachewarm::cli {

Verb PackVerb();
Verb UnpackVerb();
Verb PushVerb();
Verb PullVerb();
Verb SignVerb();
Verb VerifyVerb();
Verb InspectVerb();
Verb RunVerb();
Verb ReleaseVerb();
Verb CompletionVerb();

}  // namespace cachewarm::cli

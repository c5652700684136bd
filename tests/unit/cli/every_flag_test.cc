// SPDX-License-Identifier: Apache-2.0
// Lists for every option, operand and environment variable of the program the test that fails if it
// has no effect. A new one fails here until it has a test.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli/verbs.h"
#include "fmt/format.h"
#include "tests/fakes/setting_tests.h"

namespace cachewarm::cli {
namespace {

using fakes::NamedTest;
using Tests = std::map<std::string, NamedTest>;

const std::string kProgram = "tests/unit/cli/program_test.cc";
const std::string kCompletion = "tests/unit/cli/completion_test.cc";
const std::string kStore = "tests/unit/cli/store_flags_test.cc";
const std::string kBundle = "tests/unit/cli/bundle_flags_test.cc";
const std::string kRun = "tests/integration/cli/run_test.cc";
const std::string kTransfer = "tests/unit/cli/load_save_test.cc";
const std::string kImport = "tests/unit/cli/megacache/import_test.cc";
const std::string kExport = "tests/unit/cli/megacache/export_test.cc";
const std::string kGc = "tests/unit/cli/cluster/gc_flags_test.cc";
const std::string kWhy = "tests/unit/cli/cluster/why_flags_test.cc";
const std::string kLint = "tests/unit/cli/cluster/lint_flags_test.cc";
const std::string kStatus = "tests/unit/cli/cluster/status_flags_test.cc";
const std::string kRelease = "tests/unit/cli/cluster/release_flags_test.cc";
const std::string kReport = "tests/unit/cli/cluster/report_flags_test.cc";

// "pack --base", "release -n", "pack DIRECTORY", "run -- COMMAND" and so on, of all verbs.
std::set<std::string> NamesOfVerbs() {
  std::set<std::string> names;
  for (const Verb& verb : AllVerbs()) {
    const std::string name(verb.name);
    for (const Option& option : OptionsOf(verb)) {
      names.insert(name + " --" + std::string(option.name));
      if (option.letter != 0) {
        names.insert(name + " -" + option.letter);
      }
    }
    std::istringstream operands{std::string(verb.operands)};
    for (std::string operand; operands >> operand;) {
      names.insert(name + " " + operand);
    }
    if (verb.takes_rest) {
      names.insert(name + " -- COMMAND");
    }
  }
  return names;
}

// The environment variables that the sources name.
std::set<std::string> NamesOfVariables() {
  std::set<std::string> names;
  const auto add = [&names](const std::string& text, const std::regex& pattern) {
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      for (size_t group = 1; group < at->size(); ++group) {
        names.insert("$" + (*at)[group].str());
      }
    }
  };
  const std::filesystem::path root = fakes::SourceDir();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "cli")) {
    const std::string file = std::filesystem::relative(entry.path(), root).string();
    if (file.ends_with(".cc")) {
      add(fakes::SourceText(file), std::regex("Environment\\(\"(\\w+)\"\\)"));
    }
  }
  add(fakes::SourceText("lib/http/proxy.cc"), std::regex("take\\(\"(\\w+)\", \"(\\w+)\""));
  return names;
}

void AddForEach(const std::set<std::string>& verbs, const Tests& tests, Tests& to) {
  for (const std::string& verb : verbs) {
    for (const auto& [name, test] : tests) {
      to[verb + " " + name] = test;
    }
  }
}

// Options that several verbs share. Their tests run with each of the verbs.
Tests SharedOptions() {
  Tests tests;
  AddForEach({"pack", "unpack", "push", "pull", "sign", "verify", "inspect", "run", "load", "save",
              "import", "export", "gc"},
             {{"--auth-file", {kStore, "AuthFileHasTheCredentials"}},
              {"--ca-file", {kStore, "CaFileDecidesWhichServerIsTrusted"}},
              {"--client-certificate", {kStore, "ClientCertificateAndKeyAreSent"}},
              {"--client-key", {kStore, "ClientCertificateAndKeyAreSent"}},
              {"--insecure-host", {kStore, "InsecureHostIsAccessedByPlainHttp"}},
              {"--mirror", {kStore, "MirrorIsReadBeforeTheRegistry"}},
              {"--proxy", {kStore, "ProxyReceivesTheRequests"}},
              {"--bytes-per-second", {kStore, "BytesPerSecondSlowsDownloads"}}},
             tests);
  AddForEach({"pack", "run"},
             {{"--image", {kBundle, "IsAFactorOfTheKey"}},
              {"--container", {kBundle, "IsAFactorOfTheKey"}},
              {"--devices", {kBundle, "IsAFactorOfTheKey"}},
              {"--node-facts", {kBundle, "IsAFactorOfTheKey"}}},
             tests);
  AddForEach({"load", "save"},
             {{"--image", {kTransfer, "MachineOptionsSelectTheBundle"}},
              {"--container", {kTransfer, "MachineOptionsSelectTheBundle"}},
              {"--devices", {kTransfer, "MachineOptionsSelectTheBundle"}},
              {"--node-facts", {kTransfer, "DirectoryOfAnotherCpuClassIsNeverSaved"}},
              {"--store", {kTransfer, "ResultsAreTheFourWordsWithTheirExitCodes"}},
              {"--dir", {kTransfer, "ResultsAreTheFourWordsWithTheirExitCodes"}},
              {"--json", {kTransfer, "ResultsAreTheFourWordsWithTheirExitCodes"}},
              {"--name", {kTransfer, "NameSelectsTheBundles"}},
              {"--python", {kTransfer, "EnginesOfThePythonAreInTheKey"}},
              {"--key", {kTransfer, "SignaturesAreCheckedAndMade"}},
              {"--sign-key", {kTransfer, "SignaturesAreCheckedAndMade"}},
              {"--max-wait", {kTransfer, "StoreThatDoesNotAnswerIsAnErrorAfterMaxWait"}},
              {"--max-bytes", {kTransfer, "LimitsAreErrorsThatChangeNothing"}},
              {"--min-free-bytes", {kTransfer, "LimitsAreErrorsThatChangeNothing"}},
              {"--allow-dir", {kTransfer, "LimitsAreErrorsThatChangeNothing"}}},
             tests);
  AddForEach({"verify", "unpack"},
             {{"--limit-files", {kProgram, "LimitsOfABundleAreOptions"}},
              {"--limit-file-bytes", {kProgram, "LimitsOfABundleAreOptions"}},
              {"--limit-bytes", {kProgram, "LimitsOfABundleAreOptions"}},
              {"--limit-ratio", {kBundle, "LimitRatioAppliesAbove64MiB"}},
              {"--quiet", {kBundle, "HidesProgressOnATerminal"}}},
             tests);
  AddForEach({"unpack", "push", "pull", "verify"},
             {{"--key", {kBundle, "RejectsABundleThatTheKeyDidNotSign"}}}, tests);
  AddForEach({"pack", "unpack", "push", "pull", "sign", "verify", "inspect"},
             {{"--json", {kBundle, "PrintsOneObjectInsteadOfText"}}}, tests);
  AddForEach({"push", "pull"},
             {{"SOURCE", {kBundle, "OperandsAreReadAndWritten"}},
              {"TARGET", {kBundle, "OperandsAreReadAndWritten"}}},
             tests);
  AddForEach({"pack", "unpack", "sign", "verify", "inspect"},
             {{"BUNDLE", {kBundle, "OperandsAreReadAndWritten"}}}, tests);
  AddForEach({"pack", "unpack"}, {{"DIRECTORY", {kBundle, "OperandsAreReadAndWritten"}}}, tests);
  for (const Verb& verb : AllVerbs()) {
    for (const char* flag : {" --help", " -h"}) {
      tests[std::string(verb.name) + flag] = {kProgram, "HelpTeachesEveryVerb"};
    }
  }
  return tests;
}

// Options of the verbs that convert portable caches of torch.
Tests MegacacheOptions() {
  return {
      {"import FILE", {kImport, "WritesEveryEntryWhereTorchLooksForIt"}},
      {"import --with", {kImport, "WithIsADirectoryOfTorchOrOfCachewarmAndDefaultsToTheVariable"}},
      {"import --dir", {kImport, "WritesEveryEntryWhereTorchLooksForIt"}},
      {"import --dry-run", {kImport, "DryRunListsTheFilesAndWritesNothing"}},
      {"import --json", {kImport, "TakesTheCompiledKernelsOfTheGraphs"}},
      {"import --quiet", {kImport, "ProgressIsShownOnATerminalUnlessQuiet"}},
      {"import --store", {kImport, "StoreGetsABundleThatTheSameMachineLoads"}},
      {"import --name", {kImport, "StoreGetsABundleThatTheSameMachineLoads"}},
      {"import --key", {kImport, "BundleIsSignedAndTheSignatureIsChecked"}},
      {"import --sign-key", {kImport, "BundleIsSignedAndTheSignatureIsChecked"}},
      {"import --python", {kImport, "EnginesOfThePythonAreInTheKey"}},
      {"import --image", {kImport, "FactorsOfTheKeyAreThoseOfTheMachineOptions"}},
      {"import --container", {kImport, "FactorsOfTheKeyAreThoseOfTheMachineOptions"}},
      {"import --devices", {kImport, "FactorsOfTheKeyAreThoseOfTheMachineOptions"}},
      {"import --node-facts", {kImport, "DirectoryOfAnotherMachineStaysUnchanged"}},
      {"export --output", {kExport, "OutputReplacesAFileAndMayBeShort"}},
      {"export -o", {kExport, "OutputReplacesAFileAndMayBeShort"}},
      {"export --bundle", {kExport, "BundleIsExported"}},
      {"export --dir", {kExport, "WritesEveryEntryOfADirectory"}},
      {"export --store", {kExport, "BundleOfThisMachineIsExportedFromTheStore"}},
      {"export --name", {kExport, "DirectoryIsThatOfTorchOrOfTheName"}},
      {"export --json", {kExport, "OutputReplacesAFileAndMayBeShort"}},
      {"export --quiet", {kExport, "ProgressIsShownOnATerminalUnlessQuiet"}},
      {"export --key", {kExport, "UnsignedBundleIsRefusedWithAKey"}},
      {"export --python", {kExport, "EnginesOfThePythonSelectTheBundle"}},
      {"export --image", {kExport, "BundleOfThisMachineIsExportedFromTheStore"}},
      {"export --container", {kExport, "BundleOfThisMachineIsExportedFromTheStore"}},
      {"export --devices", {kExport, "BundleOfThisMachineIsExportedFromTheStore"}},
      {"export --node-facts", {kExport, "BundleOfThisMachineIsExportedFromTheStore"}}};
}

// Options of the verbs that show objects of a cluster.
Tests ViewOptions() {
  Tests tests = {{"lint [KIND/NAME...]", {kLint, "KindAndNameSelectTheObject"}},
                 {"lint --filename", {kLint, "FilenameReadsManifestsAndStandardInput"}},
                 {"lint -f", {kLint, "FilenameReadsManifestsAndStandardInput"}},
                 {"lint --output", {kLint, "OutputIsJsonOrYaml"}},
                 {"lint -o", {kLint, "OutputIsJsonOrYaml"}},
                 {"lint --skip", {kLint, "SkipLeavesOutARule"}},
                 {"lint --fail-on", {kLint, "FailOnDecidesTheExitCode"}},
                 {"lint --cold-start", {kLint, "ColdStartIsComparedWithProbes"}},
                 {"lint --rules", {kLint, "RulesAreListed"}},
                 {"lint --namespace", {kLint, "NamespaceSelectsTheObject"}},
                 {"lint -n", {kLint, "NamespaceSelectsTheObject"}},
                 {"status [WARMUP]", {kStatus, "WarmupShowsConditionsBuildsAndNodes"}},
                 {"status --output", {kStatus, "OutputSelectsTheFormat"}},
                 {"status -o", {kStatus, "OutputSelectsTheFormat"}},
                 {"status --watch", {kStatus, "WatchPrintsChangedRowsUntilInterrupted"}},
                 {"status -w", {kStatus, "WatchPrintsChangedRowsUntilInterrupted"}},
                 {"status --namespace", {kStatus, "NamespacesAreSelected"}},
                 {"status -n", {kStatus, "NamespacesAreSelected"}},
                 {"status --all-namespaces", {kStatus, "NamespacesAreSelected"}},
                 {"status -A", {kStatus, "NamespacesAreSelected"}}};
  for (const char* option :
       {"--kubeconfig", "--context", "--cluster", "--user", "--as", "--as-group"}) {
    tests[fmt::format("lint {}", option)] = {kLint, "OptionsOfTheClusterSelectIt"};
    tests[fmt::format("status {}", option)] = {kStatus, "OptionsOfTheClusterSelectIt"};
  }
  return tests;
}

TEST(EveryFlagHasATest, OfEveryVerb) {
  Tests tests = SharedOptions();
  tests.merge(MegacacheOptions());
  tests.merge(ViewOptions());
  tests.merge(Tests{
      {"pack --base", {kProgram, "PackUsesBaseOfSameRepository"}},
      {"sign --key", {kBundle, "SignatureIsMadeWithTheKeyOfSign"}},
      {"inspect --entries", {kBundle, "EntriesListsFiles"}},
      {"completion [SHELL]", {kCompletion, "ScriptForZshKnowsVerbsAndOptions"}},
      {"caches --output", {kProgram, "CachesPrintsATableAnObjectOrOneKind"}},
      {"caches -o", {kProgram, "CachesPrintsATableAnObjectOrOneKind"}},
      {"caches [KIND...]", {kProgram, "CachesPrintsATableAnObjectOrOneKind"}},
      {"run --cache", {kBundle, "CacheLimitsTheVariablesAndThePublishedFiles"}},
      {"run --store", {kBundle, "StoreAndNameSelectTheRepositoryOfRun"}},
      {"run --name", {kBundle, "StoreAndNameSelectTheRepositoryOfRun"}},
      {"run --dir", {kBundle, "DirIsTheCacheDirectory"}},
      {"run --key", {kBundle, "KeyOfRunRejectsUnsignedBundles"}},
      {"run --sign-key", {kBundle, "KeyOfRunRejectsUnsignedBundles"}},
      {"run --max-wait", {kRun, "StoreThatDoesNotAnswerDelaysTheCommandNoLongerThanMaxWait"}},
      {"run --ready-url", {kRun, "PublishesOnceTheUrlAnswers"}},
      {"run --ready-log", {kRun, "PublishesOnceTheLogMatchesAndAgainAtTheEnd"}},
      {"run --ready-after-quiet", {kRun, "QuietOfZeroPublishesOnlyAtTheEnd"}},
      {"run -- COMMAND", {kBundle, "CommandOfRunGetsItsWordsAndGivesTheExitCode"}},
      {"gc --store", {kGc, "RetainIsTheNumberOfBundlesPerKey"}},
      {"gc --repository", {kGc, "RepositorySelectsWhatIsCollected"}},
      {"gc --retain", {kGc, "RetainIsTheNumberOfBundlesPerKey"}},
      {"gc --older-than", {kGc, "OlderThanProtectsYoungBundles"}},
      {"gc --expire", {kGc, "ExpireDeletesKeysThatAreNotUsed"}},
      {"gc --keep-used", {kGc, "KeepUsedKeepsWhatNodesAndWarmupsNeed"}},
      {"gc --kubeconfig", {kGc, "OptionsOfTheClusterSelectIt"}},
      {"gc --context", {kGc, "OptionsOfTheClusterSelectIt"}},
      {"gc --cluster", {kGc, "OptionsOfTheClusterSelectIt"}},
      {"gc --user", {kGc, "OptionsOfTheClusterSelectIt"}},
      {"gc --as", {kGc, "ImpersonatesAUser"}},
      {"gc --as-group", {kGc, "ImpersonatesAUser"}},
      {"gc --dry-run", {kGc, "DryRunPrintsTheSameReportAndDeletesNothing"}},
      {"gc --json", {kGc, "JsonReplacesTheTable"}},
      {"why OBJECT", {kWhy, "PodIsExplainedByItsAnnotation"}},
      {"why --output", {kWhy, "OutputIsJsonOrYaml"}},
      {"why -o", {kWhy, "OutputIsJsonOrYaml"}},
      {"why --kubeconfig", {kWhy, "PodIsExplainedByItsAnnotation"}},
      {"why --context", {kWhy, "OptionsSelectTheCluster"}},
      {"why --cluster", {kWhy, "OptionsSelectTheCluster"}},
      {"why --user", {kWhy, "OptionsSelectTheCluster"}},
      {"why --as", {kWhy, "OptionsSelectTheCluster"}},
      {"why --as-group", {kWhy, "OptionsSelectTheCluster"}},
      {"why --namespace", {kWhy, "NamespaceSelectsThePod"}},
      {"why -n", {kWhy, "NamespaceSelectsThePod"}},
      {"release [POD...]", {kRelease, "NamesSelectPods"}},
      {"release --all", {kRelease, "AllReleasesThePodsOfOneNamespace"}},
      {"release --past-deadline", {kRelease, "PastDeadlineReleasesOnlyOverduePods"}},
      {"release --max-hold", {kRelease, "MaxHoldMovesTheDeadline"}},
      {"release --dry-run", {kRelease, "DryRunListsPodsAndKeepsThemHeld"}},
      {"release --remove-policy", {kRelease, "RemovePolicyDeletesBindingAndWebhook"}},
      {"release --output", {kRelease, "OutputSelectsTheFormat"}},
      {"release -o", {kRelease, "OutputSelectsTheFormat"}},
      {"release --kubeconfig", {kRelease, "KubeconfigPrecedesItsVariableAndTheVariableHome"}},
      {"release --context", {kRelease, "ContextSelectsTheNamespace"}},
      {"release --cluster", {kRelease, "ClusterSelectsTheServer"}},
      {"release --user", {kRelease, "UserSelectsTheCredentials"}},
      {"release --as", {kRelease, "AsAndAsGroupImpersonate"}},
      {"release --as-group", {kRelease, "AsAndAsGroupImpersonate"}},
      {"release --namespace", {kRelease, "NamespaceSelectsPods"}},
      {"release -n", {kRelease, "NamespaceSelectsPods"}},
      {"release --all-namespaces", {kRelease, "AllNamespacesReleasesPodsEverywhere"}},
      {"release -A", {kRelease, "AllNamespacesReleasesPodsEverywhere"}},
      {"report --output", {kReport, "OutputIsTheFile"}},
      {"report -o", {kReport, "OutputIsTheFile"}},
      {"report --force", {kReport, "EarlierReportIsReplacedAndAnyOtherFileOnlyWithForce"}},
      {"report --namespace", {kReport, "NamespaceSelectsTheWarmups"}},
      {"report -n", {kReport, "NamespaceSelectsTheWarmups"}},
      {"report --all-namespaces", {kReport, "AllNamespacesReportsOnTheCluster"}},
      {"report -A", {kReport, "AllNamespacesReportsOnTheCluster"}},
      {"report --kubeconfig", {kReport, "OptionsOfTheClusterSelectIt"}},
      {"report --context", {kReport, "OptionsOfTheClusterSelectIt"}},
      {"report --cluster", {kReport, "OptionsOfTheClusterSelectIt"}},
      {"report --user", {kReport, "OptionsOfTheClusterSelectIt"}},
      {"report --as", {kReport, "ImpersonatesAUser"}},
      {"report --as-group", {kReport, "ImpersonatesAUser"}},
  });
  fakes::ExpectATestForEach(NamesOfVerbs(), tests, "from the command line to its effect");
  for (const auto& [name, test] : tests) {
    const size_t flag = name.find(" -");
    const std::string text = flag == std::string::npos ? "" : name.substr(flag + 1);
    if (text != "-- COMMAND") {
      EXPECT_NE(fakes::SourceText(test.file).find(text), std::string::npos)
          << test.file << " does not name " << text;
    }
  }
}

TEST(EveryFlagHasATest, OfTheEnvironment) {
  fakes::ExpectATestForEach(
      NamesOfVariables(),
      {{"$HOME", {kBundle, "CacheDirectoryIsBelowHome"}},
       {"$XDG_CACHE_HOME", {kBundle, "CacheDirectoryIsBelowXdgCacheHome"}},
       {"$CACHEWARM_STORE", {kTransfer, "StoreOfTheEnvironmentIsUsed"}},
       {"$B10FS_CACHE_DIR", {kTransfer, "StoreOfTheEnvironmentIsUsed"}},
       {"$TORCHINDUCTOR_CACHE_DIR", {kTransfer, "TorchinductorCacheDirIsTheDirectory"}},
       {"$KUBECONFIG", {kRelease, "KubeconfigPrecedesItsVariableAndTheVariableHome"}},
       {"$KUBERNETES_SERVICE_HOST", {kRelease, "InAPodTheVariablesNameTheApiServer"}},
       {"$KUBERNETES_SERVICE_PORT", {kRelease, "InAPodTheVariablesNameTheApiServer"}},
       {"$HTTPS_PROXY", {kStore, "HttpsProxyTunnelsTls"}},
       {"$https_proxy", {kStore, "HttpsProxyTunnelsTls"}},
       {"$HTTP_PROXY", {kStore, "HttpProxyReceivesTheRequests"}},
       {"$http_proxy", {kStore, "HttpProxyReceivesTheRequests"}},
       {"$NO_COLOR", {kLint, "ColoursAreForTerminalsWithoutNoColor"}},
       {"$TERM", {kLint, "ColoursAreForTerminalsWithoutNoColor"}},
       {"$NO_PROXY", {kStore, "NoProxyNamesHostsThatAreAccessedDirectly"}},
       {"$no_proxy", {kStore, "NoProxyNamesHostsThatAreAccessedDirectly"}}},
      "from the environment to its effect");
}

}  // namespace
}  // namespace cachewarm::cli

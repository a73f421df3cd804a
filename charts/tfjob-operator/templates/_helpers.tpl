{{- define "tfjob-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "tfjob-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "tfjob-operator.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "tfjob-operator.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Names a cluster-scoped object. The name contains the namespace if `namespaces` is set, so that installations can coexist. */}}
{{- define "tfjob-operator.clusterName" -}}
{{- if .Values.namespaces }}
{{- printf "%s-%s" .Release.Namespace (include "tfjob-operator.fullname" .) }}
{{- else }}
{{- include "tfjob-operator.fullname" . }}
{{- end }}
{{- end }}

{{- define "tfjob-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tfjob-operator.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
app.kubernetes.io/component: operator
{{- end }}

{{- /*
Merges the labels of an object of the chart: those in `more`, those in commonLabels and the chart's own. If several have
the same key, the first of these applies; however, the selectors' labels take precedence over all others. The argument
is a dict with `root` and, if the object has labels of its own, `more`.
*/}}
{{- define "tfjob-operator.allLabels" -}}
{{- $selector := include "tfjob-operator.selectorLabels" .root | fromYaml }}
{{- $own := dict "app.kubernetes.io/part-of" "kubeflow" "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") }}
{{- toYaml (merge (dict) $selector (.more | default dict) .root.Values.commonLabels $own) }}
{{- end }}

{{- define "tfjob-operator.labels" -}}
{{- include "tfjob-operator.allLabels" (dict "root" .) }}
{{- end }}

{{- /* Returns the pods' labels. They contain no version, so they do not change if nothing else in the pods does. */}}
{{- define "tfjob-operator.podLabels" -}}
{{- $selector := include "tfjob-operator.selectorLabels" . | fromYaml }}
{{- $own := dict "app.kubernetes.io/part-of" "kubeflow" }}
{{- toYaml (merge (dict) $selector .Values.manager.podLabels .Values.commonLabels $own) }}
{{- end }}

{{- define "tfjob-operator.serviceAccountName" -}}
{{- if and .Values.rbac.create (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create is false: set serviceAccount.name (or rbac.create=false), or all pods that use the service account default get the operator's permissions" }}
{{- end }}
{{- default (ternary (include "tfjob-operator.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "tfjob-operator.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- with .Values.image.digest }}
{{- $tag = printf "%s@%s" $tag . }}
{{- end }}
{{- if .Values.image.registry }}
{{- printf "%s/%s:%s" .Values.image.registry .Values.image.repository $tag }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{- /* Returns the name of the Secret with the operator's keys; an empty string if the operator gets no keys. */}}
{{- define "tfjob-operator.keySecret" -}}
{{- if .Values.jobKey.existingSecret }}
{{- .Values.jobKey.existingSecret }}
{{- else if .Values.jobKey.create }}
{{- printf "%s-job-keys" (include "tfjob-operator.fullname" .) }}
{{- end }}
{{- end }}

{{- /*
Returns "yes" if Helm is connected to a cluster, and an empty string in `helm template` and Argo CD. Looks up an object
that exists in every cluster and that the user who installs this release may read: a ClusterRole if the release contains
ClusterRoles, and otherwise the release's namespace.
*/}}
{{- define "tfjob-operator.seesCluster" -}}
{{- if and .Values.rbac.create (or (not .Values.namespaces) .Values.rbac.nodes .Values.rbac.aggregateRoles) }}
{{- if lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "cluster-admin" }}yes{{ end }}
{{- else }}
{{- if lookup "v1" "Namespace" "" .Release.Namespace }}yes{{ end }}
{{- end }}
{{- end }}

{{- /* Lists the gang schedulers whose pod groups the operator may read and write, as JSON. */}}
{{- define "tfjob-operator.gangSchedulers" -}}
{{- $schedulers := .Values.gangScheduling.allowed }}
{{- with .Values.gangScheduling.schedulerName }}
{{- if has (lower .) (list "volcano" "native" "none") }}
{{- $schedulers = append $schedulers (lower .) }}
{{- else }}
{{- $schedulers = append $schedulers "scheduler-plugins" }}
{{- end }}
{{- end }}
{{- $schedulers | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* Lists the operator's permissions in a namespace with TFJobs. docs/rbac.md explains each of them. */}}
{{- define "tfjob-operator.jobRules" -}}
{{- $schedulers := include "tfjob-operator.gangSchedulers" . | fromJsonArray -}}
- apiGroups: [kubeflow.org]
  resources: [tfjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/status]
  verbs: [update]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- if has "volcano" $schedulers }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if has "scheduler-plugins" $schedulers }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if has "native" $schedulers }}
- apiGroups: [scheduling.k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, delete]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if ne .Values.jobs.networkPolicies "none" }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- end }}
